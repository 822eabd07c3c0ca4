//! How many numbers a caller may take: `5000/s`, or `10000000/day`.

use bates_server::{QUOTA_MAX, RATE_MAX};

#[derive(Clone, Copy, Debug)]
pub(crate) enum Limit {
    /// Numbers per second.
    Rate,
    /// Numbers per day.
    Quota,
}

impl Limit {
    const fn unit(self) -> &'static str {
        match self {
            Self::Rate => "s",
            Self::Quota => "day",
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Rate => "rate per second",
            Self::Quota => "quota per day",
        }
    }

    const fn max(self) -> u64 {
        match self {
            Self::Rate => RATE_MAX,
            Self::Quota => QUOTA_MAX,
        }
    }
}

/// Parses a limit. The unit may be left out: each limit has only one.
pub(crate) fn parse_limit(limit: Limit, text: &str) -> Result<u64, String> {
    let (count, unit) = text.split_once('/').unwrap_or((text, limit.unit()));
    let count: Option<u64> = count.parse().ok().filter(|count| (1..=limit.max()).contains(count));
    match count.filter(|_| unit == limit.unit()) {
        Some(count) => Ok(count),
        None => {
            let (max, unit) = (limit.max(), limit.unit());
            Err(format!(
                "{text:?} is no {}: expected a number from 1 to {max}, such as 5000/{unit}",
                limit.name()
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_per_second_and_a_quota_per_day() {
        assert_eq!(parse_limit(Limit::Rate, "5000/s"), Ok(5_000));
        assert_eq!(parse_limit(Limit::Rate, "5000"), Ok(5_000));
        assert_eq!(parse_limit(Limit::Quota, "10000000/day"), Ok(10_000_000));
        for text in ["", "0/s", "5/m", "5/day", "-1/s", "1.5/s", "1000000001/s", "5/s/s"] {
            let error = parse_limit(Limit::Rate, text).expect_err(text);
            assert!(error.contains("5000/s"), "{error}");
        }
    }
}
