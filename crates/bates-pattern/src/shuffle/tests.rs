//! Compares FF1 with NIST's samples and an independent implementation, and the permutation with its definition.
#![allow(clippy::cast_possible_truncation)]

use std::str::FromStr;

use aes::{Aes128, Aes256};
use fpe::ff1::{FF1, FlexibleNumeralString};
use proptest::prelude::*;

use super::ff1::Ff1;
use super::{Key, KeyError, SHUFFLE_BATCH_LEN, SHUFFLE_SIZE_MAX, Shuffle, ShuffleSizeError};

const KEY_128: &str = "2B7E151628AED2A6ABF7158809CF4F3C";
const KEY_192: &str = "2B7E151628AED2A6ABF7158809CF4F3CEF4359D8D580AA4F";
const KEY_256: &str = "2B7E151628AED2A6ABF7158809CF4F3CEF4359D8D580AA4F7F036D6F04FC6A94";

fn key(hex: &str) -> Key {
    hex.parse().unwrap()
}

fn number(numerals: &str, radix: u32) -> u128 {
    u128::from_str_radix(numerals, radix).unwrap()
}

/// The nine FF1 samples that NIST publishes with SP 800-38G.
#[test]
fn nist_samples_match() {
    const DIGITS: &str = "0123456789";
    const LETTERS: &str = "0123456789abcdefghi";
    let reversed = b"9876543210".as_slice();
    let mixed = [0x37, 0x37, 0x37, 0x37, 0x70, 0x71, 0x72, 0x73, 0x37, 0x37, 0x37].as_slice();
    let samples = [
        (KEY_128, 10, [].as_slice(), DIGITS, "2433477484"),
        (KEY_128, 10, reversed, DIGITS, "6124200773"),
        (KEY_128, 36, mixed, LETTERS, "a9tv40mll9kdu509eum"),
        (KEY_192, 10, [].as_slice(), DIGITS, "2830668132"),
        (KEY_192, 10, reversed, DIGITS, "2496655549"),
        (KEY_192, 36, mixed, LETTERS, "xbj3kv35jrawxv32ysr"),
        (KEY_256, 10, [].as_slice(), DIGITS, "6657667009"),
        (KEY_256, 10, reversed, DIGITS, "1001623463"),
        (KEY_256, 36, mixed, LETTERS, "xs8a0azh2avyalyzuwd"),
    ];
    for (secret, radix, tweak, plain, cipher) in samples {
        let ff1 = Ff1::new(&key(secret), radix, plain.len() as u32);
        let tweak = ff1.tweak(tweak);
        let (plain, cipher) = (number(plain, radix), number(cipher, radix));
        assert_eq!(ff1.encrypt(tweak, plain), cipher);
        assert_eq!(ff1.decrypt(tweak, cipher), plain);
    }
}

fn numerals(mut value: u128, radix: u32, count: u32) -> Vec<u16> {
    let mut numerals = vec![0; count as usize];
    for numeral in numerals.iter_mut().rev() {
        *numeral = (value % u128::from(radix)) as u16;
        value /= u128::from(radix);
    }
    numerals
}

fn value(numerals: &[u16], radix: u32) -> u128 {
    numerals.iter().fold(0, |value, numeral| value * u128::from(radix) + u128::from(*numeral))
}

proptest! {
    /// The `fpe` crate refuses the smallest domains; the exhaustive tests cover those.
    #[test]
    fn the_fpe_crate_agrees(
        secret: [u8; 32],
        tweak in prop::collection::vec(any::<u8>(), 0..40),
        radix in 2_u32..=94,
        numerals_wanted in 2_u32..=102,
        seed: u128,
    ) {
        let fits = |n: u32| u128::from(radix).checked_pow(n).is_some_and(|size| size <= SHUFFLE_SIZE_MAX);
        let count = (2..=numerals_wanted).rev().find(|n| fits(*n)).unwrap();
        let size = u128::from(radix).pow(count);
        let plain = seed % size;
        let text = || FlexibleNumeralString::from(numerals(plain, radix, count));

        let long = FF1::<Aes256>::new(&secret, radix).unwrap().encrypt(&tweak, &text());
        prop_assume!(long.is_ok());
        let short = FF1::<Aes128>::new(&secret[..16], radix).unwrap().encrypt(&tweak, &text());
        for (secret, theirs) in [(&secret[..], long.unwrap()), (&secret[..16], short.unwrap())] {
            let ours = Ff1::new(&Key::new(secret).unwrap(), radix, count);
            prop_assert_eq!(ours.encrypt(ours.tweak(&tweak), plain), value(&Vec::from(theirs), radix));
        }
    }

    /// Sizes of every length, because narrow halves are added in another way.
    #[test]
    fn a_batch_equals_its_single_values(
        secret: [u8; 16],
        size in 2_u128..=SHUFFLE_SIZE_MAX,
        shift in 0_u32..102,
        is_field: bool,
        seeds in prop::collection::vec(any::<u128>(), 1..=SHUFFLE_BATCH_LEN),
    ) {
        let key = Key::new(&secret).unwrap();
        let size = (size >> shift).max(2);
        let field = Shuffle::of_field(&key, 2 + (size % 93) as u8, 1 + shift % 15);
        let shuffle = field.ok().filter(|_| is_field).unwrap_or_else(|| Shuffle::new(&key, size).unwrap());
        let tweak = shuffle.tweak(b"scope");
        let indices: Vec<u128> = seeds.iter().map(|seed| seed % shuffle.size()).collect();
        let mut batch = indices.clone();
        shuffle.permute_batch(tweak, &mut batch);
        for (value, index) in batch.into_iter().zip(indices) {
            prop_assert_eq!(value, shuffle.permute(tweak, index));
            prop_assert_eq!(shuffle.invert(tweak, value), index);
        }
    }

    /// Every modulus of a half with up to 32 bits, also where the reciprocal is least exact.
    #[test]
    fn narrow_halves_are_added_as_wide_ones(modulus in 2_u64..=1 << 32, y: u64, half: u64) {
        let ff1 = Ff1::new(&key(KEY_128), 62, 6);
        for (modulus, y) in [(modulus, y), (modulus, u64::MAX), ((1 << 32) - modulus % 64, y), (2 + modulus % 64, u64::MAX - y % 64)] {
            let half = half % modulus;
            let mut block = [0; 16];
            block[..8].copy_from_slice(&y.to_be_bytes());
            let mut narrow = [half];
            ff1.add_narrow(&mut narrow, &[block.into()], modulus);
            prop_assert_eq!(u128::from(narrow[0]), (u128::from(half) + u128::from(y)) % u128::from(modulus));
        }
    }
}

#[test]
fn a_field_of_two_characters_or_more_is_shuffled_in_one_pass() {
    let key = key(KEY_128);
    for (radix, width) in [(10, 2), (62, 6), (10, 31), (2, 102), (94, 15)] {
        let shuffle = Shuffle::of_field(&key, radix, width).unwrap();
        let ff1 = Ff1::new(&key, u32::from(radix), width);
        let last = shuffle.size() - 1;
        assert_eq!(shuffle.permute(shuffle.tweak(b"t"), last), ff1.encrypt(ff1.tweak(b"t"), last));
    }
}

#[test]
fn each_tweak_and_key_gives_its_own_order() {
    let order = |secret: &str, tweak: &[u8]| {
        let shuffle = Shuffle::of_field(&key(secret), 10, 4).unwrap();
        (0..32).map(|index| shuffle.permute(shuffle.tweak(tweak), index)).collect::<Vec<_>>()
    };
    let orders = [order(KEY_128, b""), order(KEY_128, b"a"), order(KEY_128, b"b"), order(KEY_256, b"")];
    for (at, one) in orders.iter().enumerate() {
        assert!(orders[at + 1..].iter().all(|other| other != one));
    }
}

#[test]
fn sizes_outside_2_to_10_to_the_31_are_refused() {
    let key = key(KEY_128);
    for size in [0, 1, SHUFFLE_SIZE_MAX + 1, u128::MAX] {
        assert_eq!(Shuffle::new(&key, size).unwrap_err(), ShuffleSizeError(size));
    }
    assert!(Shuffle::of_field(&key, 10, 32).is_err());
    assert!(Shuffle::of_field(&key, 94, 200).is_err());
    assert!(Shuffle::new(&key, 2).is_ok() && Shuffle::new(&key, SHUFFLE_SIZE_MAX).is_ok());
}

#[test]
fn a_key_is_parsed_from_hex_and_never_printed() {
    assert_eq!(key(KEY_128), key(&KEY_128.to_lowercase()));
    assert_eq!(format!("{:?}", key(KEY_192)), "Key(192 bits)");
    assert_eq!(Key::from_str("2b7e"), Err(KeyError::Length(2)));
    assert_eq!(Key::from_str(&KEY_128[1..]), Err(KeyError::NotHex(32)));
    assert_eq!(Key::from_str("2bég"), Err(KeyError::NotHex(3)));
}
