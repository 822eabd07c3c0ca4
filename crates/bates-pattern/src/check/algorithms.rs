//! The algorithms: Verhoeff, Luhn (ISO/IEC 7812-1) and Damm over digits; mod 97-10, mod 11-2 and mod 37,36 of ISO 7064.
#![expect(clippy::cast_possible_truncation, reason = "a remainder by 97, 11 or 36 fits a byte")]

/// Verhoeff: the multiplication table of the dihedral group D5.
pub(super) const PRODUCT: [[u8; 10]; 10] = product_table();

/// The inverse of each element of D5. A reflection is its own inverse.
const INVERSE: [u8; 10] = [0, 4, 3, 2, 1, 5, 6, 7, 8, 9];

/// The permutation for each place from the right; it repeats after eight places.
const PLACE: [[u8; 10]; 8] = place_table();

/// Elements 0 to 4 are rotations, 5 to 9 reflections.
const fn product_table() -> [[u8; 10]; 10] {
    let mut table = [[0; 10]; 10];
    let mut a = 0;
    while a < 10_u8 {
        let mut b = 0;
        while b < 10_u8 {
            let turn = if a < 5 { (a + b) % 5 } else { (a + 5 - b % 5) % 5 };
            let mirrored = (a < 5) != (b < 5);
            table[a as usize][b as usize] = if mirrored { turn + 5 } else { turn };
            b += 1;
        }
        a += 1;
    }
    table
}

const fn place_table() -> [[u8; 10]; 8] {
    const STEP: [u8; 10] = [1, 5, 7, 6, 2, 8, 3, 0, 9, 4];
    let mut table = [[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]; 8];
    let mut place = 1;
    while place < 8 {
        let mut digit = 0;
        while digit < 10 {
            table[place][digit] = table[place - 1][STEP[digit] as usize];
            digit += 1;
        }
        place += 1;
    }
    table
}

/// The check digit is at place 0, so the digits before it start at place 1.
pub(super) fn verhoeff(digits: impl DoubleEndedIterator<Item = u8>) -> u8 {
    let state = digits.rev().zip(1..).fold(0, |state: u8, (digit, place): (u8, usize)| {
        PRODUCT[usize::from(state)][usize::from(PLACE[place & 7][usize::from(digit)])]
    });
    INVERSE[usize::from(state)]
}

/// From the right, every other digit is doubled, starting with the digit next to the check digit.
pub(super) fn luhn(digits: impl DoubleEndedIterator<Item = u8>) -> u8 {
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

/// The quasigroup of Damm's thesis (2004). Its diagonal is zero, so the check digit is the state itself.
const QUASIGROUP: [[u8; 10]; 10] = [
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

pub(super) fn damm(digits: impl Iterator<Item = u8>) -> u8 {
    digits.fold(0, |state, digit| QUASIGROUP[usize::from(state)][usize::from(digit)])
}

/// Two digits `c` such that the number, with letters as 10 to 35, followed by `c`, is 1 modulo 97.
pub(super) fn mod_97_10(values: impl Iterator<Item = u8>) -> [u8; 2] {
    let remainder = values.fold(0_u32, |state, value| {
        let shift = if value < 10 { 10 } else { 100 };
        (state * shift + u32::from(value)) % 97
    });
    let check = (98 - remainder * 100 % 97) as u8;
    [b'0' + check / 10, b'0' + check % 10]
}

pub(super) fn mod_11_2(digits: impl Iterator<Item = u8>) -> u8 {
    let state = digits.fold(0_u32, |state, digit| (state + u32::from(digit)) * 2 % 11);
    match (12 - state) % 11 {
        10 => b'X',
        check => b'0' + check as u8,
    }
}

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
