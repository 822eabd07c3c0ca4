//! The scope key of a cell: a short one is inside the cell, so that a lookup touches no other memory.

/// Longer keys are on the heap.
const INLINE_BYTES_MAX: usize = 30;

pub(super) enum InlineKey {
    Inline { len: u8, bytes: [u8; INLINE_BYTES_MAX] },
    Heap(Box<[u8]>),
}

impl InlineKey {
    pub(super) fn new(text: &str) -> Self {
        let mut bytes = [0; INLINE_BYTES_MAX];
        match (bytes.get_mut(..text.len()), u8::try_from(text.len())) {
            (Some(room), Ok(len)) => {
                room.copy_from_slice(text.as_bytes());
                Self::Inline { len, bytes }
            }
            _ => Self::Heap(text.as_bytes().into()),
        }
    }

    #[inline]
    pub(super) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Inline { len, bytes } => &bytes[..usize::from(*len)],
            Self::Heap(bytes) => bytes,
        }
    }

    pub(super) fn as_str(&self) -> &str {
        std::str::from_utf8(self.as_bytes()).expect("made from a text")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_any_length_keep_their_text() {
        for length in [0, 1, 29, 30, 31, 32, 255, 256, 287, 2_200] {
            let text = "x".repeat(length);
            assert_eq!(InlineKey::new(&text).as_str(), text, "{length} bytes");
        }
        assert_eq!(size_of::<InlineKey>(), 32, "half a cache line");
    }
}
