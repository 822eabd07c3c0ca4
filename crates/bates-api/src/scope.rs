//! The text form of a scope: its parameters and a business date.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use bates_pattern::Date;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Scope parameters, in the order of the request. A name that occurs twice is kept twice, so that the server can refuse it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parameters(Vec<(String, String)>);

/// A calendar day; its only text form is `2026-12-31`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Day(Date);

/// A text that is not a calendar day.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid date {0:?}: expected YYYY-MM-DD")]
pub struct DayError(String);

/// Formats a scope for display: its parameters, and its period if it has one.
pub fn scope_text(parameters: &BTreeMap<String, String>, period: Option<&str>) -> String {
    let mut words: Vec<String> = parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
    words.extend(period.map(|period| format!("@{period}")));
    words.join(" ")
}

impl Parameters {
    /// Adds a parameter.
    pub fn push(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.0.push((name.into(), value.into()));
    }

    /// The names and values, as the core takes them.
    pub fn pairs(&self) -> Vec<(&str, &str)> {
        self.iter().collect()
    }

    /// The names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for Parameters {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(pairs: I) -> Self {
        Self(pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

impl Serialize for Parameters {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

/// A string; or a whole number, which is the string of its digits: `9012` is `"9012"`.
struct ParameterValue(String);

impl<'de> Deserialize<'de> for ParameterValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ValueVisitor;
        impl Visitor<'_> for ValueVisitor {
            type Value = ParameterValue;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or a whole number")
            }

            fn visit_str<E>(self, value: &str) -> Result<ParameterValue, E> {
                Ok(ParameterValue(value.to_owned()))
            }

            fn visit_u64<E>(self, value: u64) -> Result<ParameterValue, E> {
                Ok(ParameterValue(value.to_string()))
            }

            fn visit_i64<E>(self, value: i64) -> Result<ParameterValue, E> {
                Ok(ParameterValue(value.to_string()))
            }
        }
        deserializer.deserialize_any(ValueVisitor)
    }
}

impl<'de> Deserialize<'de> for Parameters {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ParametersVisitor;
        impl<'de> Visitor<'de> for ParametersVisitor {
            type Value = Parameters;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with a string or a whole number for each parameter")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Parameters, A::Error> {
                let mut pairs = Vec::new();
                while let Some((name, ParameterValue(value))) = map.next_entry()? {
                    pairs.push((name, value));
                }
                Ok(Parameters(pairs))
            }
        }
        deserializer.deserialize_map(ParametersVisitor)
    }
}

impl Day {
    /// The date.
    pub fn date(self) -> Date {
        self.0
    }
}

impl From<Date> for Day {
    fn from(date: Date) -> Self {
        Self(date)
    }
}

impl FromStr for Day {
    type Err = DayError;

    fn from_str(text: &str) -> Result<Self, DayError> {
        // The parser accepts other formats as well, such as 20261231.
        let date = text.parse().ok().filter(|date: &Date| date.to_string() == text);
        date.map(Self).ok_or_else(|| DayError(text.chars().take(32).collect()))
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for Day {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Day {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duplicate_parameter_is_kept() {
        let text = r#"{"b":"1","a":"2","b":"3"}"#;
        let parameters: Parameters = serde_json::from_str(text).expect("an object of strings");
        assert_eq!(parameters.iter().collect::<Vec<_>>(), [("b", "1"), ("a", "2"), ("b", "3")]);
        assert_eq!(serde_json::to_string(&parameters).expect("all keys are strings"), text);
    }

    #[test]
    fn a_whole_number_is_the_text_of_its_digits() {
        let numbers: Parameters = serde_json::from_str(r#"{"type":9012,"unit":-1}"#).expect("whole numbers");
        assert_eq!(numbers.iter().collect::<Vec<_>>(), [("type", "9012"), ("unit", "-1")]);
        for other in ["9012.0", "1e3", "18446744073709551616", "true", "null", "[]", "{}"] {
            let text = format!(r#"{{"type":{other}}}"#);
            assert!(serde_json::from_str::<Parameters>(&text).is_err(), "{other}");
        }
    }

    #[test]
    fn a_day_has_one_text_form() {
        let day: Day = serde_json::from_str(r#""2026-12-31""#).expect("a valid day");
        assert_eq!(serde_json::to_string(&day).expect("a string"), r#""2026-12-31""#);
        for text in ["20261231", "2026-12-31T00:00:00", "2026-02-30", "", "tomorrow"] {
            assert!(text.parse::<Day>().is_err(), "{text}");
        }
    }
}
