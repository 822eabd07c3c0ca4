//! One measured work beside its peer and its aim, as a line for people and, if `BENCH_COMPARISONS` is set, as a line for
//! `cargo xtask bench`.

#[derive(Clone, Copy)]
pub(crate) enum Aim {
    AtLeast(f64),
    AtMost(f64),
}

/// `result` is the ratio to the peer, or an amount with its unit.
pub(crate) struct Comparison<'c> {
    pub(crate) work: &'c str,
    pub(crate) peer: &'c str,
    pub(crate) result: f64,
    pub(crate) unit: &'c str,
    pub(crate) aim: Aim,
    /// What the result was computed from.
    pub(crate) detail: String,
}

impl Comparison<'_> {
    pub(crate) fn print(&self) {
        let Self { work, peer, result, unit, aim, detail } = self;
        let (sign, bound, is_met) = match aim {
            Aim::AtLeast(bound) => ('≥', bound, result >= bound),
            Aim::AtMost(bound) => ('≤', bound, result <= bound),
        };
        let [result, bound] = [result, bound].map(|value| amount(*value, unit));
        let aim = format!("{sign} {bound}");
        let mark = if is_met { "" } else { "missed" };
        println!("  {work:<58} {result:>9}  {aim:<11} {mark:<6}  {detail}");
        if std::env::var_os("BENCH_COMPARISONS").is_some() {
            println!("comparison\t{work}\t{peer}\t{result}\t{aim}\t{mark}");
        }
    }
}

fn amount(value: f64, unit: &str) -> String {
    let decimals = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
    format!("{value:.decimals$} {unit}").trim_end().to_owned()
}

/// A whole number with separators between thousands.
pub(crate) fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

pub(crate) fn median(samples: impl IntoIterator<Item = f64>) -> f64 {
    let mut samples: Vec<f64> = samples.into_iter().collect();
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

/// Runs the rounds, and returns the median of each column.
pub(crate) fn medians<const N: usize>(rounds: usize, mut round: impl FnMut() -> [f64; N]) -> [f64; N] {
    let rounds: Vec<[f64; N]> = (0..rounds).map(|_| round()).collect();
    std::array::from_fn(|at| median(rounds.iter().map(|round| round[at])))
}
