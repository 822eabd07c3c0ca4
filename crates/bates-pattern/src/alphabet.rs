//! Alphabets in which `{seq}` is written and read. The order of their characters is part of construction 1.
#![expect(clippy::cast_possible_truncation, reason = "a remainder by a radix is a digit")]

use crate::charset::CharSet;

const DECIMAL: &[u8] = b"0123456789";

/// The named alphabets, in the order in which messages list them.
pub(crate) const NAMES: [(&str, &[u8]); 6] = [
    ("decimal", DECIMAL),
    ("base62", b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"),
    ("base58", b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"),
    ("base36", b"0123456789abcdefghijklmnopqrstuvwxyz"),
    ("crockford32", b"0123456789ABCDEFGHJKMNPQRSTVWXYZ"),
    ("hex", b"0123456789abcdef"),
];

const NOT_A_DIGIT: u8 = u8::MAX;

/// The number of visible ASCII characters.
const DIGITS_MAX: usize = 94;

/// The maximum width of `{seq}`.
pub(crate) const WIDTH_MAX: usize = 64;

/// An ordered set of characters; the value of a digit is its index.
#[derive(Clone, Debug)]
pub(crate) struct Alphabet {
    /// `decimal`, `base62`, …, or the class as written, such as `[A-F0-9]`.
    pub(crate) name: Box<str>,
    digits: [u8; DIGITS_MAX],
    pub(crate) radix: u8,
    /// The value of each ASCII character, or `NOT_A_DIGIT`.
    values: [u8; 128],
    /// The characters that are read as digits: for Crockford's base 32, more than are written.
    pub(crate) readable: CharSet,
    /// Whether lower case and look-alikes are read too. The canonical text never contains them.
    pub(crate) is_forgiving: bool,
}

impl Alphabet {
    pub(crate) fn named(name: &str) -> Option<Self> {
        let (name, digits) = NAMES.iter().find(|(listed, _)| *listed == name)?;
        Some(Self::new(name, digits, *name == "crockford32"))
    }

    pub(crate) fn decimal() -> Self {
        Self::new("decimal", DECIMAL, false)
    }

    /// The caller has checked that `ordered` is 2 to 94 distinct visible ASCII characters.
    pub(crate) fn new(name: &str, ordered: &[u8], is_forgiving: bool) -> Self {
        let mut digits = [0; DIGITS_MAX];
        let mut values = [NOT_A_DIGIT; 128];
        for (value, digit) in (0_u8..).zip(ordered) {
            digits[usize::from(value)] = *digit;
            values[usize::from(*digit)] = value;
            if is_forgiving {
                values[usize::from(digit.to_ascii_lowercase())] = value;
            }
        }
        if is_forgiving {
            for (look_alikes, value) in [(b"Oo".as_slice(), 0), (b"IiLl", 1)] {
                for byte in look_alikes {
                    values[usize::from(*byte)] = value;
                }
            }
        }
        let radix = u8::try_from(ordered.len()).expect("an alphabet has at most 94 characters");
        let read = (0_u8..128).filter(|byte| values[usize::from(*byte)] != NOT_A_DIGIT).collect::<Vec<_>>();
        Self { name: name.into(), digits, radix, values, readable: CharSet::of(&read), is_forgiving }
    }

    pub(crate) fn space(&self, width: usize) -> u128 {
        let width = u32::try_from(width).unwrap_or(u32::MAX);
        u128::from(self.radix).checked_pow(width).unwrap_or(u128::MAX)
    }

    pub(crate) fn is_decimal(&self) -> bool {
        self.digits_in_order() == DECIMAL
    }

    pub(crate) fn characters(&self) -> CharSet {
        CharSet::of(self.digits_in_order())
    }

    fn digits_in_order(&self) -> &[u8] {
        &self.digits[..usize::from(self.radix)]
    }

    pub(crate) fn digit(&self, byte: u8) -> Option<u8> {
        let value = *self.values.get(usize::from(byte))?;
        (value != NOT_A_DIGIT).then_some(value)
    }

    /// Appends `value`, padded with the zero digit to `width` (0: no padding).
    pub(crate) fn write(&self, value: u128, width: usize, out: &mut Vec<u8>) {
        let mut text = [self.digits[0]; WIDTH_MAX];
        let start = match u64::try_from(value) {
            Ok(value) => self.write_before(&mut text, WIDTH_MAX, value),
            Err(_) => self.write_wide(&mut text, value),
        };
        // Zero is written as one digit.
        let start = start.min(WIDTH_MAX - width.max(1));
        out.extend_from_slice(&text[start..]);
    }

    /// Handles values from 2^64 on, so that the slow 128-bit division is rare.
    fn write_wide(&self, text: &mut [u8; WIDTH_MAX], mut value: u128) -> usize {
        let radix = u128::from(self.radix);
        let mut end = WIDTH_MAX;
        while value > u128::from(u64::MAX) {
            end -= 1;
            text[end] = self.digits[(value % radix) as usize];
            value /= radix;
        }
        self.write_before(text, end, value as u64)
    }

    /// Writes `value` before `end`; returns the start of the text.
    fn write_before(&self, text: &mut [u8; WIDTH_MAX], end: usize, value: u64) -> usize {
        // A constant radix lets the compiler replace each division by a multiplication.
        match self.radix {
            10 => self.write_in(10, text, end, value),
            16 => self.write_in(16, text, end, value),
            32 => self.write_in(32, text, end, value),
            36 => self.write_in(36, text, end, value),
            58 => self.write_in(58, text, end, value),
            62 => self.write_in(62, text, end, value),
            radix => self.write_in(u64::from(radix), text, end, value),
        }
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the radix must be a constant at each call")]
    fn write_in(&self, radix: u64, text: &mut [u8; WIDTH_MAX], mut end: usize, mut value: u64) -> usize {
        while value != 0 && end != 0 {
            end -= 1;
            text[end] = self.digits[(value % radix) as usize];
            value /= radix;
        }
        end
    }

    /// Writes `value`, which is not wider, as the whole slot.
    pub(crate) fn fill(&self, slot: &mut [u8], value: u128) {
        let Ok(value) = u64::try_from(value) else {
            let mut text = [self.digits[0]; WIDTH_MAX];
            self.write_wide(&mut text, value);
            return slot.copy_from_slice(&text[WIDTH_MAX - slot.len()..]);
        };
        match self.radix {
            10 => self.fill_in(10, slot, value),
            36 => self.fill_in(36, slot, value),
            62 => self.fill_in(62, slot, value),
            radix => self.fill_in(u64::from(radix), slot, value),
        }
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the radix must be a constant at each call")]
    fn fill_in(&self, radix: u64, slot: &mut [u8], mut value: u64) {
        for digit in slot.iter_mut().rev() {
            *digit = self.digits[(value % radix) as usize];
            value /= radix;
        }
    }

    pub(crate) fn make_canonical(&self, text: &mut [u8]) {
        for byte in text {
            *byte = self.digit(*byte).map_or(*byte, |digit| self.digits[usize::from(digit)]);
        }
    }

    /// The value of a text, or the index of the first byte that is not a digit. Saturates.
    pub(crate) fn read(&self, text: &[u8]) -> Result<u128, usize> {
        let mut value = 0_u128;
        for (at, byte) in text.iter().enumerate() {
            let digit = self.digit(*byte).ok_or(at)?;
            value = value.saturating_mul(u128::from(self.radix)).saturating_add(u128::from(digit));
        }
        Ok(value)
    }
}
