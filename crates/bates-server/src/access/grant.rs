//! The permissions of a token, as the API and the store describe them.

use bates_api::TokenGrant;
use bates_core::{CallerLimits, DefinitionLimits, Permissions, Right, ScopeRule, SeriesPattern, SeriesSet};

const SERIES_MAX: u64 = 100_000;
const WORDS_MAX: u64 = 10_000;
/// JSON numbers are exact up to here.
pub const SCOPES_MAX: u64 = (1 << 52) - 1;
pub const RATE_MAX: u64 = 1_000_000_000;
pub const QUOTA_MAX: u64 = 1_000_000_000_000;
/// Patterns of series, parameters, and values of one parameter.
pub(crate) const LIST_MAX: usize = 100;

/// Builds the permissions that a grant describes, or says which field is invalid.
pub fn build_permissions(grant: &TokenGrant) -> Result<Permissions, String> {
    let TokenGrant { may, series, scope, series_max, scopes_max, words_max, rate, quota } = grant;
    if may.is_empty() {
        return Err(format!("may is empty: name at least one of {}", all_rights()));
    }
    let unknown = |right: &String| format!("may: unknown right {right:?}; expected some of {}", all_rights());
    check_length("may", may.len())?;
    let rights = may.iter().map(|name| Right::from_name(name).ok_or_else(|| unknown(name)));
    let rights = rights.collect::<Result<_, String>>()?;
    let series = match series {
        None => SeriesSet::All,
        Some(names) => {
            check_length("series", names.len())?;
            let patterns = names.iter().map(|name| name.parse::<SeriesPattern>());
            let patterns: Result<Vec<_>, _> = patterns.collect();
            SeriesSet::Patterns(patterns.map_err(|error| format!("series: {error}"))?.into())
        }
    };
    let default = DefinitionLimits::default();
    let limits = DefinitionLimits {
        series_max: to_usize(within("series_max", *series_max, 0..=SERIES_MAX)?, default.series_max),
        scopes_max: within("scopes_max", *scopes_max, 1..=SCOPES_MAX)?.unwrap_or(default.scopes_max),
        words_max: to_usize(within("words_max", *words_max, 0..=WORDS_MAX)?, default.words_max),
    };
    let rates = CallerLimits {
        rate: within("rate", *rate, 1..=RATE_MAX)?,
        quota: within("quota", *quota, 1..=QUOTA_MAX)?,
    };
    if !scope.is_empty() {
        check_length("scope", scope.len())?;
    }
    let rules = scope.iter().map(|(parameter, values)| {
        check_length(&format!("scope: {parameter}"), values.len())?;
        let values = values.iter().map(|value| value.as_str().into()).collect();
        Ok(ScopeRule { parameter: parameter.as_str().into(), values })
    });
    let rules = rules.collect::<Result<_, String>>()?;
    Ok(Permissions::new(rights, series).with_scope(rules).with_limits(limits).with_rates(rates))
}

fn all_rights() -> String {
    Right::ALL.map(Right::name).join(", ")
}

fn check_length(field: &str, length: usize) -> Result<(), String> {
    match length {
        1..=LIST_MAX => Ok(()),
        0 => Err(format!("{field} is empty: leave it out, or name at least one")),
        _ => Err(format!("{field} has {length} entries; the limit is {LIST_MAX}")),
    }
}

fn within(
    field: &str,
    value: Option<u64>,
    range: std::ops::RangeInclusive<u64>,
) -> Result<Option<u64>, String> {
    match value {
        Some(value) if !range.contains(&value) => {
            Err(format!("{field} is {value}; expected {} to {}", range.start(), range.end()))
        }
        value => Ok(value),
    }
}

fn to_usize(value: Option<u64>, default: usize) -> usize {
    value.map_or(default, |value| usize::try_from(value).unwrap_or(usize::MAX))
}

/// Describes permissions, for a token of the configuration file.
pub(super) fn describe(permissions: &Permissions) -> TokenGrant {
    let CallerLimits { rate, quota } = permissions.rates();
    let patterns = permissions.series().patterns();
    let is_limited = patterns.is_some();
    let limits = permissions.definition_limits();
    let to_u64 = |count: usize| u64::try_from(count).ok().filter(|_| is_limited);
    let rights = Right::ALL.into_iter().filter(|right| permissions.has(*right));
    let rules = permissions.scope_rules().iter();
    let values = |rule: &ScopeRule| rule.values.iter().map(ToString::to_string).collect();
    TokenGrant {
        may: rights.map(|right| right.name().to_owned()).collect(),
        series: patterns.map(|patterns| patterns.iter().map(ToString::to_string).collect()),
        scope: rules.map(|rule| (rule.parameter.to_string(), values(rule))).collect(),
        series_max: to_u64(limits.series_max),
        scopes_max: Some(limits.scopes_max).filter(|_| is_limited),
        words_max: to_u64(limits.words_max),
        rate,
        quota,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(json: &str) -> TokenGrant {
        serde_json::from_str(json).expect(json)
    }

    #[test]
    fn a_description_builds_the_permissions_that_it_was_made_of() {
        for json in [
            r#"{"may":["read"]}"#,
            r#"{"may":["read","take"],"series":["acme.*","document"],"rate":5000,"quota":10000000}"#,
            r#"{"may":["admin"],"scope":{"project":["PROJ","X9"]}}"#,
            r#"{"may":["define"],"series":["a.*"],"series_max":0,"scopes_max":1,"words_max":0}"#,
        ] {
            let permissions = build_permissions(&grant(json)).expect(json);
            assert_eq!(build_permissions(&describe(&permissions)), Ok(permissions), "{json}");
        }
    }

    #[test]
    fn an_invalid_field_is_named_with_its_value() {
        for (json, expected) in [
            (r#"{"may":[]}"#, "may is empty"),
            (r#"{"may":["reed"]}"#, "unknown right \"reed\""),
            (r#"{"may":["read"],"series":[]}"#, "series is empty"),
            (r#"{"may":["read"],"series":["acme*"]}"#, "acme*"),
            (r#"{"may":["read"],"scope":{"project":[]}}"#, "scope: project is empty"),
            (r#"{"may":["read"],"rate":0}"#, "rate is 0"),
            (r#"{"may":["read"],"quota":1000000000001}"#, "quota is 1000000000001"),
            (r#"{"may":["read"],"words_max":10001}"#, "words_max is 10001"),
        ] {
            let error = build_permissions(&grant(json)).expect_err(json);
            assert!(error.contains(expected), "{json}: {error}");
        }
    }
}
