//! Damm's scheme: a walk through a totally anti-symmetric quasigroup of order 10.

/// The quasigroup of Damm's thesis (2004). Its diagonal is zero, so the check digit is the state itself.
const TABLE: [[u8; 10]; 10] = [
    [0, 3, 1, 7, 5, 9, 8, 6, 4, 2],
    [7, 0, 9, 2, 1, 5, 4, 8, 6, 3],
    [4, 2, 0, 6, 8, 7, 1, 3, 5, 9],
    [1, 7, 5, 0, 9, 8, 3, 4, 2, 6],
    [6, 1, 2, 3, 0, 4, 5, 9, 7, 8],
    [3, 6, 7, 4, 2, 0, 9, 5, 8, 1],
    [5, 8, 6, 9, 7, 2, 0, 1, 3, 4],
    [8, 9, 4, 5, 3, 6, 2, 0, 1, 7],
    [9, 4, 3, 8, 6, 1, 7, 2, 0, 5],
    [2, 5, 8, 1, 4, 3, 6, 7, 9, 0],
];

pub(super) fn check_digit(digits: impl Iterator<Item = u8>) -> u8 {
    digits.fold(0, |state, digit| TABLE[usize::from(state)][usize::from(digit)])
}
