//! Adds to the messages of a reader what a person probably meant.

use bates_pattern::nearest;

/// The message, shorter if the unknown field has a near one, and with the remedy for a pattern without quotation marks.
pub(super) fn explain(message: &str) -> String {
    let mut quoted = message.split('`').skip(1).step_by(2);
    if message.starts_with("unknown field")
        && let Some(unknown) = quoted.next()
        && let Some(near) = nearest(unknown, quoted)
    {
        return format!("unknown field {unknown}: did you mean {near}?");
    }
    if message.starts_with("invalid type: map, expected a string") {
        return format!("{message}: put texts with braces in quotation marks, such as '{{seq}}'");
    }
    message.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_field_names_the_nearest_known_one() {
        let message = "unknown field `leas_max`, expected one of `lease_min`, `lease_max`";
        assert_eq!(explain(message), "unknown field leas_max: did you mean lease_max?");
        for other in ["unknown field `colour`, expected `pattern` or `key`", "missing field `pattern`"] {
            assert_eq!(explain(other), other);
        }
    }
}
