//! Three systems of ISO 7064: the pure mod 97-10 and mod 11-2, the hybrid mod 37,36.
#![expect(clippy::cast_possible_truncation, reason = "a remainder by 97, 11 or 36 fits a byte")]

/// Two digits `c` such that the number, letters taken as 10 to 35, followed by `c` is 1 modulo 97.
pub(super) fn mod_97_10(values: impl Iterator<Item = u8>) -> [u8; 2] {
    let remainder = values.fold(0_u32, |state, value| {
        let shift = if value < 10 { 10 } else { 100 };
        (state * shift + u32::from(value)) % 97
    });
    let check = (98 - remainder * 100 % 97) as u8;
    [b'0' + check / 10, b'0' + check % 10]
}

/// A digit, or `X` for ten.
pub(super) fn mod_11_2(digits: impl Iterator<Item = u8>) -> u8 {
    let state = digits.fold(0_u32, |state, digit| (state + u32::from(digit)) * 2 % 11);
    match (12 - state) % 11 {
        10 => b'X',
        check => b'0' + check as u8,
    }
}

/// A digit or an upper-case letter.
pub(super) fn mod_37_36(values: impl Iterator<Item = u8>) -> u8 {
    let product = values.fold(36_u32, |product, value| {
        let sum = match (product + u32::from(value)) % 36 {
            0 => 36,
            sum => sum,
        };
        sum * 2 % 37
    });
    match (37 - product) % 36 {
        digit @ 0..=9 => b'0' + digit as u8,
        letter => b'A' + (letter - 10) as u8,
    }
}
