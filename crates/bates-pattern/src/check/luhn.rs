//! Luhn's mod 10 (ISO/IEC 7812-1).

/// From the right, every other digit counts double, starting with the one beside the check digit.
pub(super) fn check_digit(digits: impl DoubleEndedIterator<Item = u8>) -> u8 {
    let mut sum = 0_u32;
    let mut double = true;
    for digit in digits.rev() {
        sum += u32::from(match (double, digit) {
            (false, digit) => digit,
            (true, digit @ 0..=4) => digit * 2,
            (true, digit) => digit * 2 - 9,
        });
        double = !double;
    }
    ((10 - sum % 10) % 10) as u8
}
