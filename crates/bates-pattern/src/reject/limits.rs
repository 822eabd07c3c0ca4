//! The limits of the rule sets about digits.

/// The maximum limit: OpenG2P identifiers have at most 32 digits.
const LIMIT_MAX: usize = 32;

/// Each number is compared with every entry of `not_start_with`.
const STARTS_MAX: usize = 100;

/// 100 entries of 32 digits, and every other setting once.
const TEXT_BYTES_MAX: usize = 4_096;

/// What an error shows of an invalid text.
const SHOWN_CHARS_MAX: usize = 64;

/// The limits of the rules. A limit of 0 turns its rule off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Rejects this many ascending or descending digits in a row.
    pub sequence: usize,
    /// Rejects equal digits that are closer than this many places.
    pub repeating: usize,
    /// Rejects a block of this many digits that occurs twice.
    pub repeating_block: usize,
    /// Rejects this many even digits in a row.
    pub even_run: usize,
    /// Rejects a text whose first digits, this many, equal its last digits.
    pub group: usize,
    /// Rejects a text whose first digits, this many, equal its last digits in reverse.
    pub reverse_group: usize,
    /// Rejects a text that begins with one of these.
    pub not_start_with: Vec<Box<str>>,
    /// Rejects cyclic numbers such as 142857.
    pub cyclic: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            sequence: 3,
            repeating: 2,
            repeating_block: 2,
            even_run: 3,
            group: 5,
            reverse_group: 5,
            not_start_with: vec!["0".into(), "1".into()],
            cyclic: true,
        }
    }
}

/// Why the settings of a rule set are refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the message of a variant shows its fields")]
pub enum LimitsError {
    /// No such rule set.
    #[error("unknown rule set {0:?}: expected openg2p or mosip")]
    UnknownSet(Box<str>),
    /// No such setting.
    #[error(
        "unknown setting {0:?}: expected sequence_limit, repeating_limit, repeating_block_limit, \
         conjugative_even_digits_limit, digits_group_limit, reverse_digits_group_limit or not_start_with, \
         each as name=value"
    )]
    UnknownSetting(Box<str>),
    /// A limit that is not a whole number.
    #[error("invalid limit {0:?}: expected a whole number")]
    NotANumber(Box<str>),
    /// A limit outside its bounds. A smaller one than `min` would reject everything.
    #[error("invalid {setting} {value}: expected 0 (off) or {min} to 32")]
    OutOfRange { setting: Box<str>, value: Box<str>, min: usize },
    /// A forbidden prefix that is not digits.
    #[error("invalid not_start_with {0:?}: expected digit strings separated by `|`, such as 0|1")]
    NotDigits(Box<str>),
    /// A forbidden prefix with more digits than an identifier.
    #[error("not_start_with has an entry of {0} digits; the limit is {LIMIT_MAX}")]
    LongStart(usize),
    /// Too many forbidden prefixes.
    #[error("not_start_with has {0} entries; the limit is {STARTS_MAX}")]
    TooManyStarts(usize),
    /// A forbidden prefix that is listed twice.
    #[error("not_start_with lists {0} twice: remove one")]
    DuplicateStart(Box<str>),
    /// Settings that are written too long.
    #[error("the rule set is written in {0} bytes; the limit is {TEXT_BYTES_MAX}")]
    TooLong(usize),
}

impl Limits {
    /// Each limit: its name in the OpenG2P configuration, and the smallest value that does not reject everything.
    fn entries(&mut self) -> [(&'static str, usize, &mut usize); 6] {
        [
            ("sequence_limit", 2, &mut self.sequence),
            ("repeating_limit", 1, &mut self.repeating),
            ("repeating_block_limit", 1, &mut self.repeating_block),
            ("conjugative_even_digits_limit", 1, &mut self.even_run),
            ("digits_group_limit", 1, &mut self.group),
            ("reverse_digits_group_limit", 1, &mut self.reverse_group),
        ]
    }

    pub(super) fn set(&mut self, setting: &str) -> Result<(), LimitsError> {
        let unknown = || LimitsError::UnknownSetting(shorten(setting));
        let (name, value) = setting.split_once('=').ok_or_else(unknown)?;
        if name == "not_start_with" {
            let starts = value.split('|').filter(|start| !start.is_empty());
            self.not_start_with = starts.map(Into::into).collect();
            return Ok(());
        }
        let limit = self.entries().into_iter().find(|(entry, ..)| *entry == name).ok_or_else(unknown)?.2;
        *limit = value.parse().map_err(|_| LimitsError::NotANumber(shorten(setting)))?;
        Ok(())
    }

    /// Refuses limits that would reject everything or have no effect.
    pub(super) fn check(&mut self) -> Result<(), LimitsError> {
        for (setting, min, value) in self.entries() {
            if *value != 0 && !(min..=LIMIT_MAX).contains(value) {
                let value = value.to_string().into();
                return Err(LimitsError::OutOfRange { setting: setting.into(), value, min });
            }
        }
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        match self.not_start_with.iter().find(|start| !digits(start)) {
            Some(start) => Err(LimitsError::NotDigits(shorten(start))),
            None => Ok(()),
        }
    }

    /// Refuses more text than rules need: a series keeps it, and compares each number with it.
    pub(super) fn check_size(&self) -> Result<(), LimitsError> {
        let starts = &self.not_start_with;
        if starts.len() > STARTS_MAX {
            return Err(LimitsError::TooManyStarts(starts.len()));
        }
        if let Some(long) = starts.iter().find(|start| start.len() > LIMIT_MAX) {
            return Err(LimitsError::LongStart(long.len()));
        }
        match (1..starts.len()).find(|at| starts[..*at].contains(&starts[*at])) {
            Some(at) => Err(LimitsError::DuplicateStart(starts[at].clone())),
            None => Ok(()),
        }
    }
}

pub(super) fn check_text_size(text: &str) -> Result<(), LimitsError> {
    if text.len() <= TEXT_BYTES_MAX { Ok(()) } else { Err(LimitsError::TooLong(text.len())) }
}

pub(super) fn shorten(text: &str) -> Box<str> {
    text.chars().take(SHOWN_CHARS_MAX).collect::<String>().into()
}
