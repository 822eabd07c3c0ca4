//! A folder that is reserved for a move, before its store is made.

use std::path::Path;

use crate::SqliteStore;
use crate::error::OpenError;
use crate::folder::{Folder, OpenMode, io_error};
use crate::open::{create_state, read_state};
use crate::state_file::{Content, Phase, StateFileRead};

impl SqliteStore {
    /// Creates a folder that only a move fills, before the old store is marked as left: if the move is killed then, the
    /// folder does not become a new store. Returns whether the folder is new.
    pub fn reserve(path: &Path) -> Result<bool, OpenError> {
        let is_new = !path.exists();
        let folder = Folder::open(path, OpenMode::First)?;
        if !folder.has_database() && matches!(read_state(&folder)?, StateFileRead::Missing) {
            create_state(&folder, Content { phase: Phase::Arriving, commits: 0 })?;
            return Ok(is_new);
        }
        Ok(false)
    }

    /// Undoes [`Self::reserve`] and removes the folder if it is empty, unless another run of the move uses it.
    pub fn unreserve(path: &Path) -> Result<(), OpenError> {
        let folder = match Folder::open(path, OpenMode::First) {
            Err(OpenError::InUse(_) | OpenError::InUseHere(_)) => return Ok(()),
            folder => folder?,
        };
        let is_reserved = match read_state(&folder)? {
            StateFileRead::Readable(state) => state.content().phase == Phase::Arriving,
            StateFileRead::Missing | StateFileRead::Unreadable => false,
        };
        if is_reserved && !folder.has_database() {
            let state = folder.state_file();
            std::fs::remove_file(&state).map_err(io_error("remove", &state))?;
            // A folder that existed before the reservation may hold other files.
            let _ = std::fs::remove_dir(path);
        }
        Ok(())
    }
}
