//! The rule sets of OpenG2P and MOSIP. They share their rules and limits, but interpret three rules differently.

use std::ops::Range;
use std::str::FromStr;

use super::limits::{self, Limits, LimitsError};

/// Cyclic numbers: the repeating decimals of 1/p whose multiples are their own rotations.
const CYCLIC: [&str; 9] = [
    "142857",
    "0588235294117647",
    "052631578947368421",
    "0434782608695652173913",
    "0344827586206896551724137931",
    "0212765957446808510638297872340425531914893617",
    "0169491525423728813559322033898305084745762711864406779661",
    "016393442622950819672131147540983606557377049180327868852459",
    "010309278350515463917525773195876288659793814432989690721649484536082474226804123711340206185567",
];

/// The project whose interpretation of the rules applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RuleSet {
    /// The rules of the OpenG2P id-generator.
    OpenG2p,
    /// The rules of MOSIP: equal digits exactly at the limit are refused (`1x1` at 2), 0 follows 9, and 0 is not even.
    Mosip,
}

impl RuleSet {
    /// The name of the rule set, as `--reject` takes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OpenG2p => "openg2p",
            Self::Mosip => "mosip",
        }
    }
}

/// One rule of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DigitRule {
    /// A forbidden prefix.
    NotStartWith,
    /// Equal digits too close to each other.
    RepeatingDigit,
    /// Too many even digits in a row.
    EvenRun,
    /// Too many ascending or descending digits in a row.
    Sequence,
    /// A block of digits that occurs again.
    RepeatingBlock,
    /// The last digits equal the first digits.
    FirstEqualsLast,
    /// The last digits are the first digits in reverse.
    FirstEqualsReverseLast,
    /// A cyclic number, such as 142857.
    Cyclic,
}

impl DigitRule {
    /// Every rule. Cheap rules that reject often come first.
    const ALL: [Self; 8] = [
        Self::NotStartWith,
        Self::RepeatingDigit,
        Self::EvenRun,
        Self::Sequence,
        Self::RepeatingBlock,
        Self::FirstEqualsLast,
        Self::FirstEqualsReverseLast,
        Self::Cyclic,
    ];

    /// The stable name of the rule.
    pub const fn code(self) -> &'static str {
        match self {
            Self::NotStartWith => "not_start_with",
            Self::RepeatingDigit => "repeating_digit",
            Self::EvenRun => "even_run",
            Self::Sequence => "sequence",
            Self::RepeatingBlock => "repeating_block",
            Self::FirstEqualsLast => "first_equals_last",
            Self::FirstEqualsReverseLast => "first_equals_reverse_last",
            Self::Cyclic => "cyclic",
        }
    }
}

/// A rule set with its limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DigitRules {
    rule_set: RuleSet,
    limits: Limits,
}

impl DigitRules {
    /// The rule set with these limits.
    pub fn new(rule_set: RuleSet, mut limits: Limits) -> Result<Self, LimitsError> {
        limits.check()?;
        limits.check_size()?;
        Ok(Self { rule_set, limits })
    }

    /// Parses rules that were accepted before `not_start_with` had limits: a series that exists keeps its rules.
    pub fn parse_of_any_size(text: &str) -> Result<Self, LimitsError> {
        let (rule_set, mut limits) = parse(text)?;
        limits.check()?;
        Ok(Self { rule_set, limits })
    }

    /// Which rule set this is.
    pub fn rule_set(&self) -> RuleSet {
        self.rule_set
    }

    /// The limits in force.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// How many forbidden prefixes were given.
    pub(super) fn given_count(&self) -> usize {
        let starts = &self.limits.not_start_with;
        if *starts == Limits::default().not_start_with { 0 } else { starts.len() }
    }

    pub(crate) fn limit(&self, rule: DigitRule) -> usize {
        match rule {
            DigitRule::NotStartWith | DigitRule::Cyclic => 0,
            DigitRule::RepeatingDigit => self.limits.repeating,
            DigitRule::EvenRun => self.limits.even_run,
            DigitRule::Sequence => self.limits.sequence,
            DigitRule::RepeatingBlock => self.limits.repeating_block,
            DigitRule::FirstEqualsLast => self.limits.group,
            DigitRule::FirstEqualsReverseLast => self.limits.reverse_group,
        }
    }

    /// Each rule that a text of digits breaks, and where. Evaluated lazily.
    pub(crate) fn broken_rules(&self, digits: &[u8]) -> impl Iterator<Item = (DigitRule, Range<usize>)> {
        DigitRule::ALL.into_iter().filter_map(|rule| Some((rule, self.find(rule, digits)?)))
    }

    /// Whether a text that begins with these digits breaks a rule, whatever digits follow.
    pub(crate) fn rejects_prefix(&self, digits: &[u8]) -> bool {
        self.broken_rules(digits)
            .any(|(rule, _)| !matches!(rule, DigitRule::FirstEqualsLast | DigitRule::FirstEqualsReverseLast))
    }

    fn find(&self, rule: DigitRule, digits: &[u8]) -> Option<Range<usize>> {
        let limit = self.limit(rule);
        match rule {
            DigitRule::NotStartWith => {
                let mut starts = self.limits.not_start_with.iter();
                starts.find(|start| digits.starts_with(start.as_bytes())).map(|start| 0..start.len())
            }
            DigitRule::Cyclic if self.limits.cyclic => cyclic(digits),
            _ if limit == 0 => None,
            DigitRule::RepeatingDigit => {
                let distance_max = if self.rule_set == RuleSet::Mosip { limit } else { limit - 1 };
                repeating_digit(digits, distance_max)
            }
            DigitRule::EvenRun => even_run(digits, limit, self.rule_set == RuleSet::OpenG2p),
            DigitRule::Sequence => sequence(digits, limit, self.rule_set == RuleSet::Mosip),
            DigitRule::RepeatingBlock => repeating_block(digits, limit),
            DigitRule::FirstEqualsLast => groups(digits, limit, |a, b| a == b),
            DigitRule::FirstEqualsReverseLast => groups(digits, limit, |a, b| a.iter().eq(b.iter().rev())),
            DigitRule::Cyclic => None,
        }
    }
}

/// Parses `openg2p`, or `mosip:sequence_limit=4,not_start_with=0|1`: limits are named as in the OpenG2P configuration.
impl FromStr for DigitRules {
    type Err = LimitsError;

    fn from_str(text: &str) -> Result<Self, LimitsError> {
        let (rule_set, limits) = parse(text)?;
        let rules = Self::new(rule_set, limits)?;
        limits::check_text_size(text)?;
        Ok(rules)
    }
}

fn parse(text: &str) -> Result<(RuleSet, Limits), LimitsError> {
    let (name, settings) = text.split_once(':').unwrap_or((text, ""));
    let rule_set = [RuleSet::OpenG2p, RuleSet::Mosip].into_iter().find(|set| set.name() == name);
    let rule_set = rule_set.ok_or_else(|| LimitsError::UnknownSet(limits::shorten(name)))?;
    let mut limits = Limits::default();
    for setting in settings.split(',').filter(|setting| !setting.is_empty()) {
        limits.set(setting)?;
    }
    Ok((rule_set, limits))
}

fn repeating_digit(digits: &[u8], distance_max: usize) -> Option<Range<usize>> {
    (1..=distance_max).find_map(|distance| {
        let at = digits.iter().zip(digits.get(distance..)?).position(|(one, other)| one == other)?;
        Some(at..at + distance + 1)
    })
}

fn even_run(digits: &[u8], limit: usize, zero_is_even: bool) -> Option<Range<usize>> {
    let mut run = 0;
    for (at, digit) in digits.iter().enumerate() {
        // A check character may be a letter, which is not even.
        let even = digit.is_ascii_digit() && digit % 2 == 0 && (zero_is_even || *digit != b'0');
        run = if even { run + 1 } else { 0 };
        if run == limit {
            return Some(at + 1 - limit..at + 1);
        }
    }
    None
}

/// With `wraps`, 0 follows 9.
fn sequence(digits: &[u8], limit: usize, wraps: bool) -> Option<Range<usize>> {
    let (mut up, mut down) = (1, 1);
    for at in 1..digits.len() {
        let step = |from: u8, to: u8| from + 1 == to || wraps && from == b'9' && to == b'0';
        up = if step(digits[at - 1], digits[at]) { up + 1 } else { 1 };
        down = if step(digits[at], digits[at - 1]) { down + 1 } else { 1 };
        if up == limit || down == limit {
            return Some(at + 1 - limit..at + 1);
        }
    }
    None
}

fn repeating_block(digits: &[u8], limit: usize) -> Option<Range<usize>> {
    (limit..digits.len()).find_map(|distance| {
        let mut run = 0;
        let end = digits.iter().zip(&digits[distance..]).position(|(one, other)| {
            run = if one == other { run + 1 } else { 0 };
            run == limit
        })?;
        Some(end + 1 - limit..end + 1 + distance)
    })
}

/// Compares the first digits with the last, unless they overlap.
fn groups(digits: &[u8], limit: usize, equal: impl Fn(&[u8], &[u8]) -> bool) -> Option<Range<usize>> {
    let fits = digits.len() >= 2 * limit;
    (fits && equal(&digits[..limit], &digits[digits.len() - limit..])).then_some(0..digits.len())
}

fn cyclic(digits: &[u8]) -> Option<Range<usize>> {
    CYCLIC.iter().find_map(|number| {
        let at = digits.windows(number.len()).position(|window| window == number.as_bytes())?;
        Some(at..at + number.len())
    })
}
