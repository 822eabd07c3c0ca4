//! The known name that a misspelt one probably means, for error messages. Must never decide anything else.

/// The candidate that differs least from `name`, if it differs in at most a third of its characters, or in one.
///
/// ```
/// assert_eq!(bates_pattern::nearest("projct", ["type", "project"]), Some("project"));
/// assert_eq!(bates_pattern::nearest("colour", ["type", "project"]), None);
/// ```
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Longer texts are no names, and a comparison takes the product of both lengths.
    let name: String = name.chars().take(CHARACTERS_MAX).flat_map(char::to_lowercase).collect();
    let distance_max = (name.chars().count() / 3).max(1);
    let distance = |candidate: &str| strsim::osa_distance(&name, &candidate.to_lowercase());
    let compared = candidates.into_iter().map(|candidate| (distance(candidate), candidate));
    // A name of one letter that differs in its only one is another name.
    let near =
        compared.filter(|(distance, candidate)| *distance <= distance_max && *distance < candidate.len());
    near.min_by_key(|(distance, _)| *distance).map(|(_, candidate)| candidate)
}

const CHARACTERS_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_slip_of_the_finger_is_found() {
        for (typed, meant) in [
            ("stroe", "store"),
            ("sq", "seq"),
            ("gaples", "gapless"),
            ("Series", "series"),
            ("lmit", "limit"),
            ("dokument", "document"),
        ] {
            let names = ["seq", "store", "gapless", "series", "limit", "document", "rand"];
            assert_eq!(nearest(typed, names), Some(meant), "{typed}");
        }
    }

    #[test]
    fn another_word_is_not_taken_for_a_misspelt_one() {
        for typed in
            ["", "x", "tenant", "fax", "a very long text that is no name of anything at all, and goes on"]
        {
            assert_eq!(nearest(typed, ["p", "seq", "store", "period"]), None, "{typed}");
        }
    }
}
