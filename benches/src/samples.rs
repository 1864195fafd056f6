//! Values of several runs, and their formatting.

use std::time::Duration;

/// Measured values in one unit.
#[derive(Debug, Clone, Default)]
pub struct Samples(Vec<f64>);

impl Samples {
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    pub fn add(&mut self, value: f64) {
        self.0.push(value);
    }

    /// Adds a time, in seconds.
    pub fn add_time(&mut self, time: Duration) {
        self.0.push(time.as_secs_f64());
    }

    /// Returns the median, or NaN without values.
    pub fn median(&self) -> f64 {
        self.at(0.5)
    }

    /// Returns the largest value, or NaN without values.
    pub fn largest(&self) -> f64 {
        self.at(1.0)
    }

    /// Returns the value below which this part of all values lies.
    pub fn at(&self, part: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let Some(last) = sorted.len().checked_sub(1) else {
            return f64::NAN;
        };
        let place = part * last as f64;
        let (low, high) = (
            sorted[place.floor() as usize],
            sorted[place.ceil() as usize],
        );
        low + (high - low) * place.fract()
    }
}

impl FromIterator<f64> for Samples {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        Self(values.into_iter().collect())
    }
}

/// Formats seconds with a fitting unit.
pub fn time(seconds: f64) -> String {
    match seconds {
        s if s.is_nan() => "–".to_owned(),
        s if s >= 10.0 => format!("{s:.1} s"),
        s if s >= 1.0 => format!("{s:.2} s"),
        s if s >= 0.1 => format!("{:.0} ms", s * 1e3),
        s if s >= 0.001 => format!("{:.1} ms", s * 1e3),
        s => format!("{:.0} µs", s * 1e6),
    }
}

/// Formats bytes with a fitting unit.
pub fn size(bytes: f64) -> String {
    match bytes {
        b if b.is_nan() => "–".to_owned(),
        b if b >= 1e9 => format!("{:.2} GB", b / 1e9),
        b if b >= 1e7 => format!("{:.0} MB", b / 1e6),
        b if b >= 1e5 => format!("{:.1} MB", b / 1e6),
        b => format!("{:.1} kB", b / 1e3),
    }
}

/// Formats a ratio.
pub fn times(ratio: f64) -> String {
    match ratio {
        r if !r.is_finite() => "–".to_owned(),
        r if r >= 10.0 => format!("{r:.0}×"),
        r if r >= 2.0 => format!("{r:.1}×"),
        r => format!("{r:.2}×"),
    }
}

/// Reports whether a ratio is high enough; `None` if there was nothing to compare with.
pub fn at_least(ratio: f64, wanted: f64) -> Option<bool> {
    ratio.is_finite().then_some(ratio >= wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_of_odd_and_even_counts() {
        let samples = |values: &[f64]| values.iter().copied().collect::<Samples>();
        assert_eq!(samples(&[3.0, 1.0, 2.0]).median(), 2.0);
        assert_eq!(samples(&[4.0, 1.0, 2.0, 3.0]).median(), 2.5);
        assert_eq!(samples(&[4.0, 1.0, 2.0]).largest(), 4.0);
        assert!(samples(&[]).median().is_nan());
    }

    #[test]
    fn numbers_are_written_with_a_fitting_unit() {
        assert_eq!(time(0.000_045), "45 µs");
        assert_eq!(time(0.0062), "6.2 ms");
        assert_eq!(time(1.234), "1.23 s");
        assert_eq!(time(f64::NAN), "–");
        assert_eq!(size(4_812_000_000.0), "4.81 GB");
        assert_eq!(size(240_000.0), "0.2 MB");
        assert_eq!(times(43.2), "43×");
    }
}
