//! Formatting of times.

use jiff::Zoned;

use super::{Fill, MONTHS, Part, WEEKDAYS, split};

/// Formats a time by a layout.
pub fn format(time: &Zoned, layout: &str) -> String {
    let mut out = String::new();
    let mut rest = layout;
    while let Some((before, part, own, after)) = split(rest) {
        out.push_str(before);
        write(&mut out, time, part, own);
        rest = after;
    }
    out.push_str(rest);
    out
}

fn write(out: &mut String, time: &Zoned, part: Part, own: &str) {
    use std::fmt::Write;
    let number = |out: &mut String, value: i64, width: usize, fill: Fill| {
        let _ = match fill {
            Fill::None => write!(out, "{value}"),
            Fill::Zero => write!(out, "{value:0width$}"),
            Fill::Blank => write!(out, "{value:width$}"),
        };
    };
    let two = |zero: bool| if zero { Fill::Zero } else { Fill::None };
    let month = MONTHS[usize::from(time.month().unsigned_abs().saturating_sub(1)).min(11)];
    let weekday =
        WEEKDAYS[usize::from(time.weekday().to_monday_zero_offset().unsigned_abs()).min(6)];
    let hour12 = match time.hour() % 12 {
        0 => 12,
        hour => hour,
    };
    match part {
        Part::MonthName => out.push_str(month),
        Part::MonthShort => out.push_str(&month[..3]),
        Part::Month { zero } => number(out, time.month().into(), 2, two(zero)),
        Part::WeekdayName => out.push_str(weekday),
        Part::WeekdayShort => out.push_str(&weekday[..3]),
        Part::Day { fill } => number(out, time.day().into(), 2, fill),
        Part::YearDay { fill } => number(out, time.day_of_year().into(), 3, fill),
        Part::Year => number(out, time.year().into(), 4, Fill::Zero),
        Part::YearShort => number(out, i64::from(time.year()).rem_euclid(100), 2, Fill::Zero),
        Part::Hour24 => number(out, time.hour().into(), 2, Fill::Zero),
        Part::Hour12 { zero } => number(out, hour12.into(), 2, two(zero)),
        Part::Minute { zero } => number(out, time.minute().into(), 2, two(zero)),
        Part::Second { zero } => number(out, time.second().into(), 2, two(zero)),
        Part::HalfDay { upper } => out.push_str(match (time.hour() >= 12, upper) {
            (true, true) => "PM",
            (true, false) => "pm",
            (false, true) => "AM",
            (false, false) => "am",
        }),
        Part::ZoneName => out.push_str(&crate::time::zone_name(time)),
        Part::Offset {
            utc_as_z,
            colon,
            parts,
        } => {
            let seconds = time.offset().seconds();
            if utc_as_z && seconds == 0 {
                out.push('Z');
                return;
            }
            out.push(if seconds < 0 { '-' } else { '+' });
            let size = i64::from(seconds.unsigned_abs());
            number(out, size / 3600, 2, Fill::Zero);
            for (index, value) in [size / 60 % 60, size % 60].into_iter().enumerate() {
                if index + 1 < usize::from(parts) {
                    if colon {
                        out.push(':');
                    }
                    number(out, value, 2, Fill::Zero);
                }
            }
        }
        Part::Fraction { digits, keep } => {
            let nanoseconds = format!("{:09}", time.subsec_nanosecond());
            let mut shown = nanoseconds[..digits.min(9)].to_owned();
            if !keep {
                shown.truncate(shown.trim_end_matches('0').len());
                if shown.is_empty() {
                    return;
                }
            }
            out.push_str(&own[..1]);
            out.push_str(&shown);
        }
    }
}
