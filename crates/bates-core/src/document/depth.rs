//! How deep a document may be nested.

use super::{DocumentContent, DocumentError};

/// Levels of arrays and objects in a document. Readers of a sink often stop at 100 or 128.
pub(super) const DEPTH_MAX: usize = 64;

pub(super) fn check(content: &DocumentContent) -> Result<(), DocumentError> {
    let DocumentContent::Document(json) = content else { return Ok(()) };
    let depth = json_depth(json);
    if depth > DEPTH_MAX { Err(DocumentError::TooDeep { depth }) } else { Ok(()) }
}

/// The levels of arrays and objects in a valid JSON text.
fn json_depth(json: &str) -> usize {
    let (mut depth, mut deepest, mut is_text) = (0_usize, 0, false);
    let mut bytes = json.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' if is_text => drop(bytes.next()),
            b'"' => is_text = !is_text,
            b'[' | b'{' if !is_text => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' if !is_text => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::ErrorCode;

    #[test]
    fn brackets_in_texts_are_no_levels() {
        for (json, depth) in
            [("1", 0), ("[]", 1), (r#"{"a":[{}]}"#, 3), (r#"["[[[\"[[\\"]"#, 1), ("[[],[[]],[]]", 3)]
        {
            assert_eq!(json_depth(json), depth, "{json}");
        }
    }

    #[test]
    fn a_document_deeper_than_the_limit_is_refused_with_the_limit() {
        let nested =
            |depth: usize| DocumentContent::Document(("[".repeat(depth) + &"]".repeat(depth)).into());
        assert_eq!(check(&nested(DEPTH_MAX)), Ok(()));
        let error = check(&nested(DEPTH_MAX + 1)).unwrap_err();
        assert_eq!(error.to_string(), "the document is nested 65 levels deep; the limit is 64");
        assert_eq!(error.code(), ErrorCode::BAD_DOCUMENT);
    }
}
