//! Amounts of money in whole millionths of a dollar, so that parts add up exactly to their sum.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Millionths of a dollar.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(transparent)]
pub struct Micros(pub u64);

impl Micros {
    pub const ZERO: Self = Self(0);

    /// Converts dollars as children report them. A remainder below one millionth is rounded up, so that small amounts are
    /// not free; floating-point errors are not rounded up.
    pub fn from_dollars(dollars: f64) -> Self {
        let micros = (dollars * 1e6 - 1e-3).ceil();
        // The cast saturates: NaN and negative numbers become 0, and too large ones the maximum.
        Self(micros as u64)
    }

    /// Parses dollars as people write them: `4`, `0.25`, `$1.50`.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let text = text.strip_prefix('$').unwrap_or(text);
        let (whole, part) = text.split_once('.').unwrap_or((text, ""));
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if whole.len() + part.len() == 0 || !digits(whole) || !digits(part) || part.len() > 6 {
            return None;
        }
        let whole: u64 = if whole.is_empty() {
            0
        } else {
            whole.parse().ok()?
        };
        let part: u64 = format!("{part:0<6}").parse().ok()?;
        whole.checked_mul(1_000_000)?.checked_add(part).map(Self)
    }
}

impl Add for Micros {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Micros {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Micros {
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        parts.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for Micros {
    /// Writes dollars with as many decimals as necessary, but at least two.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = format!("{:06}", self.0 % 1_000_000);
        let digits = part.trim_end_matches('0').len().max(2);
        f.pad(&format!("${}.{}", self.0 / 1_000_000, &part[..digits]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn dollars_are_read_and_printed() {
        for (text, micros, shown) in [
            ("4", 4_000_000, "$4.00"),
            ("4.00", 4_000_000, "$4.00"),
            ("0.98", 980_000, "$0.98"),
            (".000001", 1, "$0.000001"),
            ("$1.5", 1_500_000, "$1.50"),
        ] {
            assert_eq!(Micros::parse(text), Some(Micros(micros)), "{text}");
            assert_eq!(Micros(micros).to_string(), shown);
        }
        for text in [
            "",
            ".",
            "-1",
            "1e3",
            "0.0000001",
            "1,5",
            "99999999999999999999",
        ] {
            assert_eq!(Micros::parse(text), None, "{text}");
        }
    }

    #[test]
    fn reported_costs_are_rounded_up_but_float_errors_are_not() {
        assert_eq!(Micros::from_dollars(0.00066), Micros(660));
        assert_eq!(
            Micros::from_dollars(0.000_029_999_999_999_999_997),
            Micros(30)
        );
        assert_eq!(Micros::from_dollars(0.000_000_4), Micros(1));
        assert_eq!(Micros::from_dollars(0.0), Micros(0));
        assert_eq!(Micros::from_dollars(f64::NAN), Micros(0));
        assert_eq!(Micros::from_dollars(-3.0), Micros(0));
    }

    proptest! {
        #[test]
        fn printed_amounts_parse_back(micros in 0u64..100_000_000_000) {
            prop_assert_eq!(Micros::parse(&Micros(micros).to_string()), Some(Micros(micros)));
            prop_assert_eq!(Micros::from_dollars(micros as f64 / 1e6), Micros(micros));
        }
    }
}
