//! A file or an object for each document. Owns the description, and which of the two an address means. Must never take
//! credentials from anywhere but the environment.

mod bucket;
mod folder;
mod path;
mod staging;

use bates_core::Sink;
use reqwest::Url;
use serde::Deserialize;

use self::bucket::Bucket;
use self::folder::Folder;
use crate::description::SinkError;
use crate::secret::Secret;

const FIELD: &str = "object.url";

/// A folder or bucket as it is described.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObjectDescription {
    /// `file:///folder` or `s3://bucket/prefix`.
    pub url: Secret,
}

pub(crate) fn open(description: &ObjectDescription) -> Result<Box<dyn Sink>, SinkError> {
    let wrong = |problem: &str| SinkError::new(FIELD, problem);
    let url = Url::parse(description.url.reveal())
        .map_err(|error| SinkError::new(FIELD, format!("this is no address: {error}")))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("it holds a user or a password; credentials come from the environment"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(wrong("it ends with its path: no ? and no #"));
    }
    match url.scheme() {
        "file" => {
            let folder = url.to_file_path().map_err(|()| wrong("a folder is written as file:///folder"))?;
            Ok(Box::new(Folder::open(&folder)?))
        }
        "s3" => Ok(Box::new(Bucket::open(&url)?)),
        _ => Err(wrong("it begins with file:/// or s3://")),
    }
}
