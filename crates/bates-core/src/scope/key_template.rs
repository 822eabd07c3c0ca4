//! The `key` of a series: how Redis keys name its scopes, `id-pool:{project}:{type}`. Owns the way from a key to
//! parameters. The pattern decides which values its parameters may have.

use std::fmt;

const BYTES_MAX: usize = 256;
const VALUE_BYTES_MAX: usize = 64;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyTemplate {
    source: Box<str>,
    prefix: Box<str>,
    /// Each parameter, and the literal after it: empty only after the last.
    parameters: Box<[(Box<str>, Box<str>)]>,
    /// Indexes of the parameters sorted by name, as in a scope's key.
    by_name: Box<[usize]>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("key {key:?}: {problem}")]
pub struct KeyTemplateError {
    key: Box<str>,
    problem: &'static str,
}

impl KeyTemplate {
    /// Visible ASCII, and parameters in braces with something between them.
    pub fn parse(source: &str) -> Result<Self, KeyTemplateError> {
        let refuse = |problem| {
            let key = source.chars().take(BYTES_MAX).collect::<String>().into();
            KeyTemplateError { key, problem }
        };
        let is_visible = source.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_visible || !(1..=BYTES_MAX).contains(&source.len()) {
            return Err(refuse("a key is 1 to 256 visible ASCII characters"));
        }
        let mut parts = source.split('{');
        let prefix = parts.next().unwrap_or_default();
        let mut parameters: Vec<(Box<str>, Box<str>)> = Vec::new();
        for part in parts {
            let (name, literal) = part.split_once('}').ok_or_else(|| refuse("a `{` is not closed"))?;
            check_parameter(name, &parameters).map_err(refuse)?;
            parameters.push((name.into(), literal.into()));
        }
        if prefix.contains('}') || parameters.iter().any(|(_, literal)| literal.contains('}')) {
            return Err(refuse("a `}` has no `{` before it"));
        }
        let mut by_name: Vec<usize> = (0..parameters.len()).collect();
        by_name.sort_by_key(|index| &parameters[*index].0);
        let (source, prefix) = (source.into(), prefix.into());
        Ok(Self { source, prefix, parameters: parameters.into(), by_name: by_name.into() })
    }

    /// In the order of the key.
    pub fn parameters(&self) -> impl Iterator<Item = &str> {
        self.parameters.iter().map(|(name, _)| &**name)
    }

    /// Each parameter and its value; `None` if the key does not match the template. A value ends at the first
    /// occurrence of the literal after it, so a key is read in one way only.
    pub fn read<'k>(&'k self, key: &'k str) -> Option<impl Iterator<Item = (&'k str, &'k str)>> {
        self.matches(key).then(|| {
            let mut rest = &key[self.prefix.len()..];
            self.parameters.iter().map_while(move |(name, literal)| {
                let (value, behind) = split(rest, literal)?;
                rest = behind;
                Some((&**name, value))
            })
        })
    }

    /// The key of a scope with the template's parameters. `None` if it could not be read back.
    pub fn write<'v>(&self, value_of: impl Fn(&str) -> Option<&'v str>) -> Option<String> {
        let mut key = self.prefix.to_string();
        for (name, literal) in &self.parameters {
            key.extend([value_of(name)?, literal]);
        }
        let read = self.read(&key)?.all(|(name, value)| value_of(name) == Some(value));
        read.then_some(key)
    }

    /// The text before the first parameter.
    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Appends the canonical key of the scope that a key of this template names; see [`crate::ScopeKey`].
    pub fn write_scope(&self, key: &str, scope: &mut String) {
        for index in &self.by_name {
            let Some((name, value)) = self.read(key).and_then(|mut pairs| pairs.nth(*index)) else { return };
            let space = if scope.is_empty() { "" } else { " " };
            scope.extend([space, name, "=", value]);
        }
    }

    pub fn matches(&self, key: &str) -> bool {
        let Some(mut rest) = key.strip_prefix(&*self.prefix) else { return false };
        for (_, literal) in &self.parameters {
            let Some((value, behind)) = split(rest, literal) else { return false };
            if !is_value(value) {
                return false;
            }
            rest = behind;
        }
        rest.is_empty()
    }

    /// Whether a key could match both templates. May be wrongly true, never wrongly false.
    pub fn may_overlap(&self, other: &Self) -> bool {
        match (self.parameters.is_empty(), other.parameters.is_empty()) {
            (true, _) => other.matches(&self.source),
            (_, true) => self.matches(&other.source),
            _ => self.prefix.starts_with(&*other.prefix) || other.prefix.starts_with(&*self.prefix),
        }
    }
}

impl fmt::Display for KeyTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)
    }
}

fn check_parameter(name: &str, before: &[(Box<str>, Box<str>)]) -> Result<(), &'static str> {
    let named = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if !named {
        return Err("a parameter is a letter, then letters, digits and _");
    }
    if before.iter().any(|(known, _)| **known == *name) {
        return Err("a parameter stands twice");
    }
    match before.last() {
        Some((_, between)) if between.is_empty() => Err("two parameters have nothing between them"),
        _ => Ok(()),
    }
}

/// A value and the rest after the literal; without a literal, everything.
fn split<'k>(rest: &'k str, literal: &str) -> Option<(&'k str, &'k str)> {
    if literal.is_empty() { Some((rest, "")) } else { rest.split_once(literal) }
}

pub(crate) fn is_value(value: &str) -> bool {
    let byte = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b':' | b'@');
    (1..=VALUE_BYTES_MAX).contains(&value.len()) && value.bytes().all(byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_keys_of_the_template_are_read_into_parameters() {
        let (long, both) = (format!("seq:{}", "x".repeat(65)), vec![("project", "PROJ"), ("type", "9012")]);
        for (template, key, expected) in [
            ("seq:{conversation}", "seq:conv_abc123", Some(vec![("conversation", "conv_abc123")])),
            ("seq:{conversation}", "seq:room:7@x.y", Some(vec![("conversation", "room:7@x.y")])),
            ("id-pool:{project}:{type}", "id-pool:PROJ:9012", Some(both)),
            ("short", "short", Some(vec![])),
            ("{tenant}/n", "acme/n", Some(vec![("tenant", "acme")])),
            ("seq:{c}", "seq:", None),
            ("seq:{c}", "seqs:a", None),
            ("seq:{c}", "seq:a b", None),
            ("seq:{c}", "seq:../x", None),
            ("seq:{c}", "seq:*", None),
            ("seq:{c}", &*long, None),
            ("short", "short2", None),
            ("a:{x}:b", "a:1:bb", None),
            ("a:{x}:b", "a:1", None),
        ] {
            let parsed = KeyTemplate::parse(template).unwrap();
            let parameters = parsed.read(key).map(Iterator::collect::<Vec<_>>);
            assert_eq!(parameters, expected, "{template} {key}");
        }
    }

    #[test]
    fn bad_templates_are_refused() {
        let bad =
            ["", "a b", "a:{x", "a:x}", "a:{}", "a:{1}", "{x}{y}", "{x}:{x}", "é", "a}:{x}", "{x:digits}"];
        for bad in bad {
            assert!(KeyTemplate::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn templates_that_may_share_a_key_are_detected() {
        let overlap = |one: &str, other: &str| {
            let (one, other) = (KeyTemplate::parse(one).unwrap(), KeyTemplate::parse(other).unwrap());
            assert_eq!(one.may_overlap(&other), other.may_overlap(&one));
            one.may_overlap(&other)
        };
        assert!(
            overlap("seq:{a}", "seq:{b}") && overlap("seq:{a}", "seq:x:{b}") && overlap("short", "short")
        );
        assert!(overlap("{a}", "short") && overlap("seq:{a}", "seq:total"));
        assert!(!overlap("seq:{a}", "counter:{a}") && !overlap("short", "short:{a}"));
        assert!(!overlap("short", "farmer"));
    }
}
