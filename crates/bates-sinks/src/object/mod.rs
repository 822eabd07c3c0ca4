//! A file or an object for each document; the address decides which. Must take credentials only from the environment.

mod bucket;
mod folder;
mod path;
mod staging;

use bates_core::Sink;
use serde::Deserialize;

use self::bucket::Bucket;
use self::folder::Folder;
use crate::description::{SinkError, parse_url};
use crate::secret::Secret;

const FIELD: &str = "object.url";

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObjectDescription {
    /// `file:///folder` or `s3://bucket/prefix`.
    pub url: Secret,
}

pub(crate) fn open(description: &ObjectDescription) -> Result<Box<dyn Sink>, SinkError> {
    let wrong = |problem: &str| SinkError::new(FIELD, problem);
    let url = parse_url(&description.url, FIELD, "credentials come from the environment")?;
    if url.query().is_some() || url.fragment().is_some() {
        return Err(wrong("the address must end with its path, without ? and #"));
    }
    match url.scheme() {
        "file" => {
            let folder = url.to_file_path().map_err(|()| wrong("expected file:///folder"))?;
            Ok(Box::new(Folder::open(&folder)?))
        }
        "s3" => Ok(Box::new(Bucket::open(&url)?)),
        _ => Err(wrong("expected an address that begins with file:/// or s3://")),
    }
}
