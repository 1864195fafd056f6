//! Money in whole micro-dollars, so that parts add up to their sum.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Millionths of a US dollar.
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
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// From dollars, as children tell them. What is left below a millionth counts as one, so that nothing is free by being
    /// small; the noise of floating point does not.
    pub fn from_dollars(dollars: f64) -> Self {
        let micros = (dollars * 1e6 - 1e-3).ceil();
        // A cast takes NaN and what is below zero as nothing, and what is too large as the largest.
        Self(micros as u64)
    }

    /// From dollars as people write them: `4`, `0.25`, `$1.50`.
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
    /// Dollars, with as many digits as it takes, but at least two.
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
    fn what_children_say_is_rounded_up_but_noise_is_not() {
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
        fn what_is_printed_is_read_again(micros in 0u64..100_000_000_000) {
            prop_assert_eq!(Micros::parse(&Micros(micros).to_string()), Some(Micros(micros)));
            prop_assert_eq!(Micros::from_dollars(micros as f64 / 1e6), Micros(micros));
        }
    }
}
