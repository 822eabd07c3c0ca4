//! Reads the configuration of the OpenG2P id-generator: its file, variables and database. ID types become series;
//! settings of its pools are ignored.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use serde_json::Value as Json;

use super::tree::{Node, Origin};
use crate::output;

/// Prefix of its variables, in any case; two underscores separate the levels.
const PREFIX: &str = "id_generator";

/// Its names of the limits, in the order of a rule set.
const LIMITS: [&str; 6] = [
    "sequence_limit",
    "repeating_limit",
    "repeating_block_limit",
    "conjugative_even_digits_limit",
    "digits_group_limit",
    "reverse_digits_group_limit",
];

#[derive(Debug)]
struct IdGenerator {
    limits: [usize; 6],
    not_start_with: Vec<String>,
    restricted_numbers: Vec<String>,
    /// Digits of an ID by type.
    id_types: BTreeMap<String, usize>,
}

/// Settings of its pools, which Bates ignores.
const POOL_SETTINGS: [&str; 5] = [
    "pool_min_threshold",
    "pool_generation_batch_size",
    "pool_check_interval_seconds",
    "exhaustion_max_attempts",
    "sub_batch_size",
];

impl Default for IdGenerator {
    fn default() -> Self {
        let of = bates_pattern::Limits::default();
        Self {
            limits: [of.sequence, of.repeating, of.repeating_block, of.even_run, of.group, of.reverse_group],
            not_start_with: of.not_start_with.iter().map(ToString::to_string).collect(),
            restricted_numbers: vec![],
            id_types: BTreeMap::new(),
        }
    }
}

/// Its ID types as series in YAML. Variables override the file.
pub(crate) fn series(file: &Path, variables: &BTreeMap<String, String>) -> Result<String> {
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let shown = file.display();
    let mut tree: Node = serde_saphyr::from_str(&text).map_err(|error| anyhow!("{shown}: {error}"))?;
    for (name, value) in variables {
        overlay_variable(&mut tree, name, value);
    }
    let described = tree.get(PREFIX).map_or(Json::Null, Node::to_json);
    let parsed = read(&described).map_err(|problem| anyhow!("{shown}: id_generator: {problem}"));
    let (id_generator, unknown) = parsed?;
    for name in unknown {
        output::print_note(&format!("{shown}: id_generator: unknown key {name} is ignored"));
    }
    if id_generator.id_types.is_empty() {
        bail!("{shown} has no ID types: expected id_generator: id_types: with a name and an id_length each");
    }
    Ok(to_yaml(&id_generator))
}

/// The values, and unknown names.
fn read(described: &Json) -> Result<(IdGenerator, Vec<String>), String> {
    let mut read = IdGenerator::default();
    let mut unknown = Vec::new();
    let entries = match described {
        Json::Null => return Ok((read, unknown)),
        Json::Object(entries) => entries,
        other => return Err(format!("expected a map, not {other}")),
    };
    for (name, value) in entries {
        let wrong = |problem: String| format!("{name}: {problem}");
        match &**name {
            "not_start_with" => read.not_start_with = parse_texts(value).map_err(wrong)?,
            "restricted_numbers" => read.restricted_numbers = parse_texts(value).map_err(wrong)?,
            // Called namespaces by its first releases.
            "id_types" | "namespaces" => read.id_types = parse_id_types(value).map_err(wrong)?,
            name => match LIMITS.iter().position(|limit| *limit == name) {
                Some(at) => read.limits[at] = parse_whole_number(value).map_err(wrong)?,
                None => unknown.extend((!POOL_SETTINGS.contains(&name)).then(|| name.to_owned())),
            },
        }
    }
    Ok((read, unknown))
}

fn parse_whole_number(value: &Json) -> Result<usize, String> {
    let whole = value.as_u64().and_then(|value| usize::try_from(value).ok());
    whole.ok_or_else(|| format!("expected a whole number, not {value}"))
}

/// Digits may be written as numbers.
fn parse_texts(value: &Json) -> Result<Vec<String>, String> {
    let text = |value: &Json| match value {
        Json::String(text) => Ok(text.clone()),
        Json::Number(number) if number.is_u64() => Ok(number.to_string()),
        other => Err(format!("expected digits, not {other}")),
    };
    match value {
        Json::Null => Ok(vec![]),
        Json::Array(values) => values.iter().map(text).collect(),
        other => Err(format!("expected a list, not {other}")),
    }
}

fn parse_id_types(value: &Json) -> Result<BTreeMap<String, usize>, String> {
    let Json::Object(entries) = value else {
        return Err(format!("expected a map of names, each with an id_length, not {value}"));
    };
    let one = |(name, described): (&String, &Json)| {
        let length = described.get("id_length").ok_or_else(|| format!("{name}: missing id_length"))?;
        let length = parse_whole_number(length).map_err(|problem| format!("{name}: id_length: {problem}"))?;
        if length < 2 {
            return Err(format!("{name}: id_length: expected at least 2, a digit and the check digit"));
        }
        if !bates_server::http::is_id_type_name(name) {
            let rule = "a lower-case letter and 1 to 63 of a-z, 0-9 and _";
            return Err(format!("invalid ID type {name:?}: expected {rule}"));
        }
        Ok((name.clone(), length))
    };
    entries.iter().map(one).collect()
}

/// `ID_GENERATOR__NOT_START_WITH=["0"]`: the value is JSON or YAML, as the id-generator reads it.
fn overlay_variable(tree: &mut Node, name: &str, value: &str) {
    let path: Vec<String> = name.to_ascii_lowercase().split("__").map(str::to_owned).collect();
    if path[0] == PREFIX {
        let origin = Origin::Variable(name.to_owned());
        let read = serde_saphyr::from_str(value).unwrap_or_else(|_| Node::text(value, origin.clone()));
        *tree.get_or_insert(&path, &origin) = read;
    }
}

/// JSON text is valid YAML.
fn to_yaml(id_generator: &IdGenerator) -> String {
    let quoted = |text: &str| Json::from(text).to_string();
    let restrict = Json::from(id_generator.restricted_numbers.clone()).to_string();
    let mut text = String::from("series:\n");
    for (name, id_length) in &id_generator.id_types {
        let pattern = quoted(&format!("{{seq:{}}}{{check:verhoeff}}", id_length - 1));
        let (name, reject) = (quoted(name), quoted(&rule_set(id_generator)));
        let _ =
            write!(text, "  {name}:\n    pattern: {pattern}\n    order: shuffled\n    reject: {reject}\n");
        if !id_generator.restricted_numbers.is_empty() {
            let _ = writeln!(text, "    restrict: {restrict}");
        }
    }
    text
}

/// The rule set, with the settings that differ from its defaults.
fn rule_set(given: &IdGenerator) -> String {
    let default = IdGenerator::default();
    let limits = LIMITS.iter().zip(given.limits).zip(default.limits);
    let changed = limits.filter(|((_, given), default)| given != default);
    let mut settings: Vec<String> = changed.map(|((name, given), _)| format!("{name}={given}")).collect();
    if given.not_start_with != default.not_start_with {
        settings.push(format!("not_start_with={}", given.not_start_with.join("|")));
    }
    if settings.is_empty() { "openg2p".to_owned() } else { format!("openg2p:{}", settings.join(",")) }
}

/// The address of its database. It holds the password and must never be shown.
pub(crate) fn database_url(variables: &BTreeMap<String, String>) -> Option<String> {
    const DEFAULTS: [(&str, &str); 5] = [
        ("DB_USER", "postgres"),
        ("DB_PASSWORD", "postgres"),
        ("DB_HOST", "localhost"),
        ("DB_PORT", "5432"),
        ("DB_NAME", "idgenerator"),
    ];
    if !DEFAULTS.iter().any(|(name, _)| variables.contains_key(*name)) {
        return None;
    }
    let value = |(name, default)| percent_encode(variables.get(name).map_or(default, String::as_str));
    let [user, password, host, port, name] = DEFAULTS.map(value);
    Some(format!("postgres://{user}:{password}@{host}:{port}/{name}"))
}

fn percent_encode(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
    text.bytes().fold(String::new(), |mut escaped, byte| {
        if plain(byte) {
            escaped.push(byte.into());
        } else {
            let _ = write!(escaped, "%{byte:02X}");
        }
        escaped
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables<const N: usize>(given: [(&str, &str); N]) -> BTreeMap<String, String> {
        given.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
    }

    fn read<const N: usize>(text: &str, given: [(&str, &str); N]) -> Result<String> {
        let file = tempfile::NamedTempFile::new()?;
        std::fs::write(file.path(), text)?;
        series(file.path(), &variables(given))
    }

    const FILE: &str = "id_generator:\n  sequence_limit: 4\n  not_start_with: [\"0\"]\n  restricted_numbers: [\"786\"]\n  \
        pool_min_threshold: 1000\n  id_types: { farmer: {id_length: 6}, household: {id_length: 10} }\n";

    #[test]
    fn a_file_becomes_series_with_its_rules() {
        let read = read(FILE, []).unwrap();
        assert_eq!(
            read,
            "series:\n  \"farmer\":\n    pattern: \"{seq:5}{check:verhoeff}\"\n    order: shuffled\n    \
             reject: \"openg2p:sequence_limit=4,not_start_with=0\"\n    restrict: [\"786\"]\n  \
             \"household\":\n    pattern: \"{seq:9}{check:verhoeff}\"\n    order: shuffled\n    \
             reject: \"openg2p:sequence_limit=4,not_start_with=0\"\n    restrict: [\"786\"]\n"
        );
    }

    #[test]
    fn variables_override_the_file_in_any_case_and_depth() {
        let given = [
            ("ID_GENERATOR__SEQUENCE_LIMIT", "3"),
            ("id_generator__not_start_with", r#"["0", "1"]"#),
            ("ID_GENERATOR__RESTRICTED_NUMBERS", "[]"),
            ("ID_GENERATOR__ID_TYPES__HOUSEHOLD__ID_LENGTH", "8"),
            ("ID_GENERATOR__POOL_MIN_THRESHOLD", "5"),
            ("ID_GENERATORX__SEQUENCE_LIMIT", "9"),
        ];
        let read = read(FILE, given).unwrap();
        assert!(read.contains("reject: \"openg2p\"\n") && !read.contains("restrict:"), "{read}");
        assert!(read.contains("{seq:7}") && read.contains("{seq:5}"), "{read}");
        let whole = self::read("", [("ID_GENERATOR", r#"{"id_types": {"one": {"id_length": 4}}}"#)]).unwrap();
        assert!(whole.contains("{seq:3}"), "{whole}");
    }

    #[test]
    fn namespaces_is_an_old_name_of_id_types() {
        assert!(read("id_generator: {namespaces: {ns: {id_length: 5}}}", []).unwrap().contains("\"ns\""));
    }

    #[test]
    fn mistakes_in_the_file_are_reported_with_their_key() {
        for (text, expected) in [
            ("{id_types: {}}", "has no ID types"),
            ("{}\nseries: {}", "has no ID types"),
            ("{id_types: {xy: {id_length: 1}}}", "id_types: xy: id_length: expected at least 2"),
            ("{id_types: {xy: {length: 5}}}", "id_types: xy: missing id_length"),
            ("{id_types: {xy: {id_length: six}}}", "xy: id_length: expected a whole number, not \"six\""),
            ("{id_types: {xy: 6}}", "xy: missing id_length"),
            ("{id_types: {x: {id_length: 6}}}", "invalid ID type \"x\""),
            ("{id_types: {farmer-x: {id_length: 6}}}", "invalid ID type \"farmer-x\""),
            ("{sequence_limit: many, id_types: {xy: {id_length: 5}}}", "sequence_limit: expected a whole"),
            ("{not_start_with: 0, id_types: {xy: {id_length: 5}}}", "not_start_with: expected a list"),
            ("[", ":"),
        ] {
            let error = format!("{:#}", read(&format!("id_generator: {text}"), []).unwrap_err());
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn variables_name_the_database() {
        assert_eq!(database_url(&BTreeMap::new()), None);
        let one = database_url(&variables([("DB_HOST", "db.example")])).unwrap();
        assert_eq!(one, "postgres://postgres:postgres@db.example:5432/idgenerator");
        let all = [
            ("DB_HOST", "h"),
            ("DB_PORT", "6432"),
            ("DB_NAME", "ids"),
            ("DB_USER", "u"),
            ("DB_PASSWORD", "p@ss/w:rd %"),
        ];
        assert_eq!(database_url(&variables(all)).unwrap(), "postgres://u:p%40ss%2Fw%3Ard%20%25@h:6432/ids");
    }
}
