//! An audit in words: `true`, or how long it is kept.

use std::fmt;
use std::time::Duration;

use bates_core::Auditing;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::FieldError;

/// A hundred years.
const HOURS_MAX: u64 = 876_000;

/// Whether it is recorded who takes numbers: `true`, `false`, or `{retention_hours: 9600}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(untagged)]
pub enum DescribedAudit {
    /// It is, and kept for ever; or it is not.
    Switch(bool),
    /// It is, and kept for a time.
    Kept(KeptAudit),
}

/// How long an audit is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct KeptAudit {
    /// A record is removed after so many hours.
    #[schema(minimum = 1, maximum = 876_000, example = 9_600)]
    pub retention_hours: u64,
}

impl Default for DescribedAudit {
    fn default() -> Self {
        Self::Switch(false)
    }
}

impl DescribedAudit {
    pub(super) fn is_off(&self) -> bool {
        *self == Self::Switch(false)
    }

    pub(super) fn auditing(self) -> Result<Auditing, FieldError> {
        match self {
            Self::Switch(false) => Ok(Auditing::Off),
            Self::Switch(true) => Ok(Auditing::On(None)),
            Self::Kept(KeptAudit { retention_hours: hours @ 1..=HOURS_MAX }) => {
                Ok(Auditing::On(Some(Duration::from_hours(hours))))
            }
            Self::Kept(KeptAudit { retention_hours }) => {
                let problem = format!("retention_hours is {retention_hours}; it may be 1 to {HOURS_MAX}");
                Err(FieldError { field: "audit", problem: problem.into() })
            }
        }
    }
}

/// By hand, so that what is wrong is told.
impl<'de> Deserialize<'de> for DescribedAudit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = DescribedAudit;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("true, false, or a map with retention_hours")
            }

            fn visit_bool<E>(self, is_on: bool) -> Result<DescribedAudit, E> {
                Ok(DescribedAudit::Switch(is_on))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<DescribedAudit, A::Error> {
                KeptAudit::deserialize(MapAccessDeserializer::new(map)).map(DescribedAudit::Kept)
            }
        }
        deserializer.deserialize_any(Either)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Description;
    use super::*;

    fn read(audit: &str) -> Result<Auditing, String> {
        let text = format!(r#"{{"pattern":"{{seq}}","audit":{audit}}}"#);
        let description = Description::read(&text).map_err(|error| error.to_string())?;
        let spec = description.spec("n".parse().map_err(|_| "a name")?).map_err(|error| error.to_string())?;
        assert_eq!(Description::read(&spec.description).expect("it was written"), description);
        Ok(spec.audit)
    }

    #[test]
    fn an_audit_is_a_switch_or_says_how_long_it_is_kept() {
        assert_eq!(read("false"), Ok(Auditing::Off));
        assert_eq!(read("true"), Ok(Auditing::On(None)));
        assert_eq!(read(r#"{"retention_hours":24}"#), Ok(Auditing::On(Some(Duration::from_hours(24)))));
        for (wrong, told) in [
            ("1", "expected true, false, or a map with retention_hours"),
            (r#""yes""#, "expected true, false, or a map with retention_hours"),
            ("{}", "missing field `retention_hours`"),
            (r#"{"retention_hours":0}"#, "audit: retention_hours is 0; it may be 1 to 876000"),
            (r#"{"hours":1}"#, "unknown field `hours`"),
        ] {
            let error = read(wrong).expect_err(wrong);
            assert!(error.contains(told), "{wrong}: {error}");
        }
    }

    #[test]
    fn a_series_without_an_audit_is_written_as_ever() {
        let spec = Description::new("{seq}").spec("n".parse().expect("a name")).expect("it is good");
        assert!(!spec.description.contains("audit"));
    }
}
