//! Finds the programs of the servers. Debian keeps those of PostgreSQL outside PATH, in a folder per version, so
//! both are searched. Must never run anything.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

/// Where Debian and Ubuntu keep PostgreSQL: `15/bin`, `17/bin`, …
const VERSIONS_DIR: &str = "/usr/lib/postgresql";

/// Finds a program in the newest PostgreSQL of the machine, on PATH, or in `/usr/sbin`.
pub fn find(program: &str) -> Option<PathBuf> {
    let on_path = env::var_os("PATH").unwrap_or_default();
    newest_version_bin(Path::new(VERSIONS_DIR))
        .into_iter()
        .chain(env::split_paths(&on_path))
        // Debian installs servers there, and not every PATH has it.
        .chain([PathBuf::from("/usr/sbin")])
        .map(|folder| folder.join(program))
        .find(|path| path.is_file())
}

/// The folder of the newest version with a server; a version with only the client has a folder too.
fn newest_version_bin(versions: &Path) -> Option<PathBuf> {
    fs::read_dir(versions)
        .ok()?
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let version: u32 = entry.file_name().to_str()?.parse().ok()?;
            let bin = entry.path().join("bin");
            bin.join("initdb").is_file().then_some((version, bin))
        })
        .max()
        .map(|(_, bin)| bin)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn install(versions: &Path, version: &str, program: &str) {
        let bin = versions.join(version).join("bin");
        fs::create_dir_all(&bin).unwrap();
        fs::write(bin.join(program), "").unwrap();
    }

    #[test]
    fn versions_are_compared_as_numbers() {
        let versions = tempfile::tempdir().unwrap();
        install(versions.path(), "9", "initdb");
        install(versions.path(), "15", "initdb");
        install(versions.path(), "common", "initdb");
        assert_eq!(newest_version_bin(versions.path()), Some(versions.path().join("15/bin")));
    }

    #[test]
    fn a_version_with_only_a_client_is_skipped() {
        let versions = tempfile::tempdir().unwrap();
        install(versions.path(), "15", "initdb");
        install(versions.path(), "17", "psql");
        assert_eq!(newest_version_bin(versions.path()), Some(versions.path().join("15/bin")));
    }

    #[test]
    fn a_missing_program_is_not_found() {
        assert_eq!(find("no-such-program-anywhere"), None);
    }
}
