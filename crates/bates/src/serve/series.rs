//! The series that are there without a configuration: one for each job that Bates is made for.

use bates_core::{KeyTemplate, Promise, SeriesSpec};
use bates_pattern::{Position, Reject};

pub(super) fn built_in() -> anyhow::Result<Vec<SeriesSpec>> {
    Ok(vec![
        SeriesSpec {
            start: Position::new(1001),
            ..spec("document", "{project}-{type}-{seq}", Promise::Unique, "id-pool:{project}:{type}")?
        },
        SeriesSpec { shuffled: true, ..spec("short", "{seq:base62:6}", Promise::Unique, "short")? },
        SeriesSpec {
            shuffled: true,
            reject: Reject::default().with_digits("openg2p".parse()?),
            ..spec("farmer", "{seq:11}{check:verhoeff}", Promise::Unique, "farmer")?
        },
        spec("conversation", "{seq}", Promise::Ordered, "seq:{conversation}")?,
        spec("counter", "{seq}", Promise::Ordered, "counter:{name}")?,
    ])
}

fn spec(name: &str, template: &str, promise: Promise, key: &str) -> anyhow::Result<SeriesSpec> {
    let key = Some(KeyTemplate::parse(key)?);
    Ok(SeriesSpec { promise, key, ..SeriesSpec::new(name.parse()?, template) })
}
