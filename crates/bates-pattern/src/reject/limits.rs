//! The settings of the rule sets about digits.

/// Limits beyond the longest identifier mean nothing.
const LIMIT_MAX: usize = 32;

/// The limits of the rules. A limit of 0 turns its rule off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// No run of this many ascending or descending digits.
    pub sequence: usize,
    /// No equal digits closer than this many places.
    pub repeating: usize,
    /// No block of this many digits twice.
    pub repeating_block: usize,
    /// No run of this many even digits.
    pub even_run: usize,
    /// The first digits, this many, are not also the last ones.
    pub group: usize,
    /// The first digits, this many, are not also the last ones backwards.
    pub reverse_group: usize,
    /// What an identifier may not begin with.
    pub not_start_with: Vec<Box<str>>,
    /// Whether cyclic numbers such as 142857 are refused.
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

/// Settings of a rule set that were refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LimitsError {
    /// No such rule set.
    #[error("{0:?} is no rule set: expected openg2p or mosip")]
    UnknownSet(Box<str>),
    /// No such setting.
    #[error(
        "{0:?} is no setting: expected sequence_limit, repeating_limit, repeating_block_limit, \
         conjugative_even_digits_limit, digits_group_limit, reverse_digits_group_limit or not_start_with, \
         each as name=value"
    )]
    UnknownSetting(Box<str>),
    /// A limit that is no number.
    #[error("{0:?}: a limit is a whole number")]
    NotANumber(Box<str>),
    /// A limit outside its bounds.
    #[error("{setting}={value:?}: a limit is 0 (the rule is off) or {min} to 32")]
    OutOfRange {
        /// The setting.
        setting: Box<str>,
        /// What was given.
        value: Box<str>,
        /// The smallest limit that does not refuse everything.
        min: usize,
    },
    /// A beginning that is no digits.
    #[error("not_start_with={0:?}: expected digit strings separated by `|`, such as 0|1")]
    NotDigits(Box<str>),
}

impl Limits {
    /// Each limit: its name in the OpenG2P configuration, and the smallest that does not refuse everything.
    fn named(&mut self) -> [(&'static str, usize, &mut usize); 6] {
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
        let unknown = || LimitsError::UnknownSetting(setting.into());
        let (name, value) = setting.split_once('=').ok_or_else(unknown)?;
        if name == "not_start_with" {
            let starts = value.split('|').filter(|start| !start.is_empty());
            self.not_start_with = starts.map(Into::into).collect();
            return Ok(());
        }
        let limit = self.named().into_iter().find(|(known, ..)| *known == name).ok_or_else(unknown)?.2;
        *limit = value.parse().map_err(|_| LimitsError::NotANumber(setting.into()))?;
        Ok(())
    }

    /// Refuses limits that would refuse everything or mean nothing.
    pub(super) fn check(&mut self) -> Result<(), LimitsError> {
        for (setting, min, value) in self.named() {
            if *value != 0 && !(min..=LIMIT_MAX).contains(value) {
                let value = value.to_string().into();
                return Err(LimitsError::OutOfRange { setting: setting.into(), value, min });
            }
        }
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        match self.not_start_with.iter().find(|start| !digits(start)) {
            Some(start) => Err(LimitsError::NotDigits(start.clone())),
            None => Ok(()),
        }
    }
}
