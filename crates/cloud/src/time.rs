//! Times as clouds write them.

use pinion_message::Millis;

const DAY: i64 = 86_400;

/// A time in seconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// The time now.
    pub fn now() -> Self {
        Self(pinion_message::now_millis().div_euclid(1000))
    }

    /// The day, as `YYYYMMDD`.
    pub fn date(self) -> String {
        let (year, month, day) = civil(self.0.div_euclid(DAY));
        format!("{year:04}{month:02}{day:02}")
    }

    /// The moment, as `YYYYMMDD'T'HHMMSS'Z'`.
    pub fn basic(self) -> String {
        let second = self.0.rem_euclid(DAY);
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        format!("{}T{hour:02}{minute:02}{second:02}Z", self.date())
    }
}

/// Returns year, month and day of a day since 1970 (Howard Hinnant's algorithm).
fn civil(day: i64) -> (i64, i64, i64) {
    let shifted = day + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

/// Returns the day since 1970 of a date.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// Parses a time like `2026-01-02T03:04:05Z`, with any fraction of a second, or with an offset of hours and minutes.
pub fn parse_time(text: &str) -> Option<Millis> {
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<i64>().ok();
    let separators = [(4, b'-'), (7, b'-'), (13, b':'), (16, b':')];
    if separators
        .iter()
        .any(|(at, sign)| text.as_bytes().get(*at) != Some(sign))
    {
        return None;
    }
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    if !(1..=12).contains(&month)
        || !(1..=31).contains(&day)
        || hour > 24
        || minute > 59
        || second > 60
    {
        return None;
    }
    let rest = text
        .get(19..)?
        .trim_start_matches(|c: char| c == '.' || c.is_ascii_digit());
    let offset = match rest {
        "Z" | "z" | "UTC" | "" => 0,
        _ => {
            let sign = if rest.starts_with('-') { -1 } else { 1 };
            let digits: String = rest.chars().filter(char::is_ascii_digit).collect();
            let digits = digits.get(..4)?.parse::<i64>().ok()?;
            sign * (digits / 100 * 3600 + digits % 100 * 60)
        }
    };
    let seconds = days(year, month, day) * DAY + hour * 3600 + minute * 60 + second - offset;
    Some(seconds * 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_and_read() {
        let moment = Timestamp(1_767_323_045);
        assert_eq!(moment.basic(), "20260102T030405Z");
        for text in [
            "2026-01-02T03:04:05Z",
            "2026-01-02T03:04:05.123Z",
            "2026-01-02T05:04:05+02:00",
        ] {
            assert_eq!(parse_time(text), Some(1_767_323_045_000), "{text}");
        }
        for text in [
            "",
            "2026",
            "2026-13-02T03:04:05Z",
            "2026-01-02 yesterday at",
            "é026-01-02T03:04:05Z",
        ] {
            assert_eq!(parse_time(text), None, "{text}");
        }
        for second in (-3_000_000_000..5_000_000_000_i64).step_by(86_400 * 97) {
            let (year, month, day) = civil(second.div_euclid(DAY));
            assert_eq!(days(year, month, day), second.div_euclid(DAY));
        }
    }
}
