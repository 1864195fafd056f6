//! Durations as people write and read them.

use std::time::Duration;

/// Parses a duration such as `500ms`, `90s`, `1h30m` or `2w`. `None` for anything else and for one that is too long.
pub fn parse(text: &str) -> Option<Duration> {
    let mut total = Duration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let (number, tail) = split(rest, |letter| letter.is_ascii_digit());
        let (unit, tail) = split(tail, |letter| letter.is_ascii_alphabetic());
        let unit: u64 = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 24 * 3_600_000,
            "w" => 7 * 24 * 3_600_000,
            _ => return None,
        };
        let milliseconds = number.parse::<u64>().ok()?.checked_mul(unit)?;
        total = total.checked_add(Duration::from_millis(milliseconds))?;
        rest = tail;
    }
    (!text.is_empty()).then_some(total)
}

fn split(text: &str, belongs: impl Fn(char) -> bool) -> (&str, &str) {
    let end = text.find(|letter| !belongs(letter)).unwrap_or(text.len());
    text.split_at(end)
}

/// Formats whole seconds in at most two units: `9s`, `3m39s`, `1h02m`, with `gap` between the units.
pub fn compact(time: Duration, gap: &str) -> String {
    let seconds = time.as_secs();
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{minutes}m{gap}{:02}s", seconds % 60),
        _ => format!("{hours}h{gap}{:02}m", minutes % 60),
    }
}

/// Formats whole seconds in at most two units: `9 s`, `3 min 39 s`, `1 h 2 min`.
pub fn words(time: Duration) -> String {
    let seconds = time.as_secs();
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{minutes} min {} s", seconds % 60),
        _ => format!("{hours} h {} min", minutes % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_read_and_added() {
        for (text, milliseconds) in [
            ("500ms", 500),
            ("90s", 90_000),
            ("1h30m", 5_400_000),
            ("2w1d", 15 * 86_400_000),
            ("0s", 0),
        ] {
            assert_eq!(
                parse(text),
                Some(Duration::from_millis(milliseconds)),
                "{text}"
            );
        }
        for wrong in [
            "",
            "5",
            "s",
            "5x",
            "-5s",
            "1.5s",
            "5 s",
            "5S",
            "99999999999999999999s",
            "30500568904943w",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn at_most_two_units_are_shown() {
        for (seconds, short, long) in [
            (0, "0s", "0 s"),
            (59, "59s", "59 s"),
            (65, "1m 05s", "1 min 5 s"),
            (3_780, "1h 03m", "1 h 3 min"),
            (360_000, "100h 00m", "100 h 0 min"),
        ] {
            let time = Duration::from_secs(seconds);
            assert_eq!(compact(time, " "), short);
            assert_eq!(words(time), long);
        }
    }
}
