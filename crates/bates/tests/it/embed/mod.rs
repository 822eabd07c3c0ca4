//! The library embedded in a program: every call, and what happens to numbers however the program ends.

mod calls;
mod cancellation;
mod crash;
mod documents;
mod folder;
mod forks;
mod prefetch;
mod refusals;
pub(crate) mod runtimes;
mod threads;

use std::path::Path;

use bates::{Bates, Promise, Series};

/// The series that most tests use.
fn series() -> [Series; 3] {
    [
        Series::new("document", "{project}-{type}-{seq}").start(1001),
        Series::new("short", "{seq:base62:6}").shuffled(),
        Series::new("conversation", "{seq}").promise(Promise::Ordered).key("seq:{conversation}"),
    ]
}

/// Opens in a task of its own, as a program may do.
async fn open(folder: &Path) -> Bates {
    tokio::spawn(Bates::open(folder.to_owned(), series())).await.unwrap().unwrap()
}

const PLAN: [(&str, &str); 2] = [("project", "PROJ"), ("type", "9012")];
