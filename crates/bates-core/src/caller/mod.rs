//! Callers: which rights one has, for which series and scopes, and how many numbers it may take. Owns the rules that decide
//! whether a caller may do something. Must never know how a caller proves who it is: that belongs to the front ends.

mod allowance;
mod coverage;
mod machine;
mod series_set;
mod token;

use crate::code::ErrorCode;
use crate::named::named;
use crate::scope::ScopeKey;
use crate::series::{SeriesName, SeriesSpec};

pub use allowance::{
    Allowance, AllowanceError, CallerLimits, DrawnQuota, QuotaDraw, QuotaRequest, Shortage, TakenAllowance,
};
pub use machine::TokenSet;
pub use series_set::{SeriesPattern, SeriesPatternError, SeriesSet};
pub use token::{
    CallerToken, PreviousSecret, SecretDigest, TOKENS_MAX, TokenChange, TokenError, is_caller_name,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Right {
    /// Look at series, scopes, documents and gaps; validate and find numbers.
    Read,
    /// Take numbers, leases and reservations, and number documents.
    Take,
    /// Create, change and retire series.
    Define,
    /// Decide about documents, find gaps, and act on pools and floors.
    Operate,
    /// Manage callers.
    Admin,
}

named!(Right { Read = "read", Take = "take", Define = "define", Operate = "operate", Admin = "admin" });

/// A set of rights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rights(u8);

impl Rights {
    pub const ALL: Self = Self((1 << Right::ALL.len()) - 1);

    #[inline]
    pub const fn has(self, right: Right) -> bool {
        self.0 & (1 << right as u8) != 0
    }
}

impl FromIterator<Right> for Rights {
    fn from_iter<I: IntoIterator<Item = Right>>(rights: I) -> Self {
        Self(rights.into_iter().fold(0, |bits, right| bits | 1 << right as u8))
    }
}

/// What a caller may do: its rights, the series they cover, and within these the scopes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permissions {
    rights: Rights,
    series: SeriesSet,
    scope: Vec<ScopeRule>,
    limits: DefinitionLimits,
    rates: CallerLimits,
}

/// Admits only scopes in which a parameter has one of these values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScopeRule {
    pub parameter: Box<str>,
    pub values: Vec<Box<str>>,
}

/// Bounds of what a caller may define, if its series are limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DefinitionLimits {
    /// Series that the caller's patterns cover, over all callers that share them.
    pub series_max: usize,
    /// Of one series.
    pub scopes_max: u64,
    /// Restricted words and forbidden prefixes of one series.
    pub words_max: usize,
}

impl Default for DefinitionLimits {
    fn default() -> Self {
        Self { series_max: 100, scopes_max: 10_000_000, words_max: 1_000 }
    }
}

/// Why a caller may not do something.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Denial {
    /// The same words as for a series that does not exist: a caller must not learn which series others have.
    #[error("there is no series {0:?}")]
    UnseenSeries(Box<str>),
    #[error("this caller may not {right} series {series:?}: its token lacks the right \"{right}\"")]
    MissingSeriesRight { right: Right, series: Box<str> },
    #[error("this caller lacks the right \"{0}\": add it to `may` of its token")]
    MissingRight(Right),
    #[error("this caller is limited to some values of the parameter {0:?}: `scope` of its token lists them")]
    OtherScope(Box<str>),
    #[error("this caller is limited to some scopes: name one of them")]
    ManyScopes,
    #[error("the key {key:?} must begin with {prefixes}: the keys of other callers begin differently")]
    ForeignKey { key: Box<str>, prefixes: Box<str> },
    #[error(
        "this caller may not define the key {0:?}: its token needs a pattern in `series`, such as acme.*"
    )]
    NoKeys(Box<str>),
    #[error("this caller may define at most {0} series: retire one, or raise `series_max` of its token")]
    TooManySeries(usize),
    #[error("{what} is {value}; the limit of this caller is {limit}")]
    BeyondLimit { what: &'static str, value: u64, limit: u64 },
}

impl Denial {
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::UnseenSeries(_) => ErrorCode::UNKNOWN_SERIES,
            Self::TooManySeries(_) => ErrorCode::TOO_MANY_SERIES,
            _ => ErrorCode::FORBIDDEN,
        }
    }
}

impl Permissions {
    /// Every right, for all series and scopes.
    pub fn all() -> Self {
        Self::new(Rights::ALL, SeriesSet::All)
    }

    pub fn new(rights: Rights, series: SeriesSet) -> Self {
        let (limits, rates) = (DefinitionLimits::default(), CallerLimits::default());
        Self { rights, series, scope: Vec::new(), limits, rates }
    }

    #[must_use]
    pub fn with_scope(self, scope: Vec<ScopeRule>) -> Self {
        Self { scope, ..self }
    }

    #[must_use]
    pub fn with_limits(self, limits: DefinitionLimits) -> Self {
        Self { limits, ..self }
    }

    #[must_use]
    pub fn with_rates(self, rates: CallerLimits) -> Self {
        Self { rates, ..self }
    }

    pub fn definition_limits(&self) -> DefinitionLimits {
        self.limits
    }

    pub fn scope_rules(&self) -> &[ScopeRule] {
        &self.scope
    }

    pub fn rates(&self) -> CallerLimits {
        self.rates
    }

    /// Whether the caller has the right for at least one series.
    #[inline]
    pub fn has(&self, right: Right) -> bool {
        self.rights.has(right)
    }

    pub fn check_has(&self, right: Right) -> Result<(), Denial> {
        if self.has(right) { Ok(()) } else { Err(Denial::MissingRight(right)) }
    }

    /// The series that lists show to this caller.
    pub fn series(&self) -> &SeriesSet {
        &self.series
    }

    /// Whether the caller could define a series with this key. Only such a key is looked up in the store if this node does
    /// not know it: otherwise the time would tell which keys other callers have.
    pub fn owns_key(&self, key: &str) -> bool {
        self.series.owns_key(key)
    }

    /// Whether this caller may use a series so. On the hot path.
    #[inline]
    pub fn check(&self, right: Right, series: &SeriesName) -> Result<(), Denial> {
        if self.rights.has(right) && self.series.contains(series) {
            Ok(())
        } else {
            Err(self.deny(right, series))
        }
    }

    /// A series that the caller may not read does not exist for it.
    #[cold]
    fn deny(&self, right: Right, series: &SeriesName) -> Denial {
        let series_text = series.as_str().into();
        if self.rights.has(Right::Read) && self.series.contains(series) {
            Denial::MissingSeriesRight { right, series: series_text }
        } else {
            Denial::UnseenSeries(series_text)
        }
    }

    /// Whether the rights cover all series and scopes.
    pub fn is_unlimited(&self) -> bool {
        self.series == SeriesSet::All && self.has_all_scopes()
    }

    #[inline]
    pub fn has_all_scopes(&self) -> bool {
        self.scope.is_empty()
    }

    pub fn check_all_scopes(&self) -> Result<(), Denial> {
        if self.has_all_scopes() { Ok(()) } else { Err(Denial::ManyScopes) }
    }

    /// Whether this caller may use the scope with these parameters. A scope without the parameter of a rule is refused.
    pub fn check_scope(&self, parameters: &[(&str, &str)]) -> Result<(), Denial> {
        let is_admitted = |rule: &ScopeRule| {
            parameters.iter().any(|(name, value)| {
                **name == *rule.parameter && rule.values.iter().any(|known| **known == **value)
            })
        };
        match self.scope.iter().find(|rule| !is_admitted(rule)) {
            None => Ok(()),
            Some(rule) => Err(Denial::OtherScope(rule.parameter.clone())),
        }
    }

    pub fn check_scope_key(&self, scope: &ScopeKey) -> Result<(), Denial> {
        if self.has_all_scopes() {
            return Ok(());
        }
        self.check_scope(&scope.parts().0.collect::<Vec<_>>())
    }

    /// Whether this caller may define the key of the series. Limited callers have prefixes, so that no two can claim one key.
    pub fn check_key(&self, spec: &SeriesSpec) -> Result<(), Denial> {
        let Some(key) = spec.key.as_ref().filter(|key| !self.owns_key(key.prefix())) else { return Ok(()) };
        let key = key.to_string().into();
        let prefixes: Vec<String> = self.series.key_prefixes().map(|prefix| format!("{prefix:?}")).collect();
        if prefixes.is_empty() {
            return Err(Denial::NoKeys(key));
        }
        Err(Denial::ForeignKey { key, prefixes: prefixes.join(" or ").into() })
    }

    /// Whether this caller may define the series. `others` is how many other series its patterns cover already.
    pub fn check_definition(&self, spec: &SeriesSpec, others: usize) -> Result<(), Denial> {
        self.check(Right::Define, &spec.name)?;
        self.check_all_scopes()?;
        if self.series == SeriesSet::All {
            return Ok(());
        }
        let (limits, to_u64) = (self.limits, |count: usize| u64::try_from(count).unwrap_or(u64::MAX));
        let within = |what, value, limit| {
            if value <= limit { Ok(()) } else { Err(Denial::BeyondLimit { what, value, limit }) }
        };
        if others >= limits.series_max {
            return Err(Denial::TooManySeries(limits.series_max));
        }
        within("scopes_max", spec.limits.scopes_max, limits.scopes_max)?;
        within(
            "the number of restricted words and not_start_with entries",
            to_u64(spec.reject.given_count()),
            to_u64(limits.words_max),
        )
    }
}

#[cfg(test)]
mod tests;
