//! Go's layouts for times: an example, the second of January 2006 at 15:04:05, shows the form.

use jiff::Zoned;
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{Offset, TimeZone};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    MonthName,
    MonthShort,
    Month {
        zero: bool,
    },
    WeekdayName,
    WeekdayShort,
    Day {
        fill: Fill,
    },
    YearDay {
        fill: Fill,
    },
    Year,
    YearShort,
    Hour24,
    Hour12 {
        zero: bool,
    },
    Minute {
        zero: bool,
    },
    Second {
        zero: bool,
    },
    HalfDay {
        upper: bool,
    },
    ZoneName,
    Offset {
        utc_as_z: bool,
        colon: bool,
        parts: u8,
    },
    Fraction {
        digits: usize,
        keep: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fill {
    None,
    Zero,
    Blank,
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const WEEKDAYS: [&str; 7] = [
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
];

/// The fixed forms, longer ones before what they begin with.
const FORMS: &[(&str, Part)] = &[
    ("January", Part::MonthName),
    ("Jan", Part::MonthShort),
    ("Monday", Part::WeekdayName),
    ("Mon", Part::WeekdayShort),
    ("MST", Part::ZoneName),
    ("002", Part::YearDay { fill: Fill::Zero }),
    ("01", Part::Month { zero: true }),
    ("02", Part::Day { fill: Fill::Zero }),
    ("03", Part::Hour12 { zero: true }),
    ("04", Part::Minute { zero: true }),
    ("05", Part::Second { zero: true }),
    ("06", Part::YearShort),
    ("15", Part::Hour24),
    ("1", Part::Month { zero: false }),
    ("2006", Part::Year),
    ("2", Part::Day { fill: Fill::None }),
    ("__2", Part::YearDay { fill: Fill::Blank }),
    ("_2", Part::Day { fill: Fill::Blank }),
    ("3", Part::Hour12 { zero: false }),
    ("4", Part::Minute { zero: false }),
    ("5", Part::Second { zero: false }),
    ("PM", Part::HalfDay { upper: true }),
    ("pm", Part::HalfDay { upper: false }),
    (
        "-07:00:00",
        Part::Offset {
            utc_as_z: false,
            colon: true,
            parts: 3,
        },
    ),
    (
        "-070000",
        Part::Offset {
            utc_as_z: false,
            colon: false,
            parts: 3,
        },
    ),
    (
        "-07:00",
        Part::Offset {
            utc_as_z: false,
            colon: true,
            parts: 2,
        },
    ),
    (
        "-0700",
        Part::Offset {
            utc_as_z: false,
            colon: false,
            parts: 2,
        },
    ),
    (
        "-07",
        Part::Offset {
            utc_as_z: false,
            colon: false,
            parts: 1,
        },
    ),
    (
        "Z07:00:00",
        Part::Offset {
            utc_as_z: true,
            colon: true,
            parts: 3,
        },
    ),
    (
        "Z070000",
        Part::Offset {
            utc_as_z: true,
            colon: false,
            parts: 3,
        },
    ),
    (
        "Z07:00",
        Part::Offset {
            utc_as_z: true,
            colon: true,
            parts: 2,
        },
    ),
    (
        "Z0700",
        Part::Offset {
            utc_as_z: true,
            colon: false,
            parts: 2,
        },
    ),
    (
        "Z07",
        Part::Offset {
            utc_as_z: true,
            colon: false,
            parts: 1,
        },
    ),
];

/// The first part of a layout: what stands before it, the part, its own text and the rest.
fn split(layout: &str) -> Option<(&str, Part, &str, &str)> {
    for (at, _) in layout.char_indices() {
        let rest = &layout[at..];
        if let Some(found) = fraction(rest, &layout[..at]) {
            let (part, length) = found;
            return Some((&layout[..at], part, &rest[..length], &rest[length..]));
        }
        for (form, part) in FORMS {
            let Some(after) = rest.strip_prefix(form) else {
                continue;
            };
            // `_2006` is an underscore and a year; `Janet` is no month.
            if *form == "_2" && rest.starts_with("_2006") {
                continue;
            }
            if *form == "Jan" && after.starts_with(|c: char| c.is_ascii_lowercase()) {
                continue;
            }
            return Some((&layout[..at], *part, form, after));
        }
    }
    None
}

/// `.000` or `.999` after the seconds.
fn fraction(rest: &str, before: &str) -> Option<(Part, usize)> {
    let mut bytes = rest.bytes();
    if !matches!(bytes.next(), Some(b'.' | b',')) || !before.ends_with('5') {
        return None;
    }
    let digit = bytes.next().filter(|b| matches!(b, b'0' | b'9'))?;
    let digits = rest.bytes().skip(1).take_while(|b| *b == digit).count();
    if rest
        .as_bytes()
        .get(1 + digits)
        .is_some_and(u8::is_ascii_digit)
    {
        return None;
    }
    let keep = digit == b'0';
    Some((Part::Fraction { digits, keep }, 1 + digits))
}

/// A moment in the form a layout shows.
pub fn format(time: &Zoned, layout: &str) -> String {
    let mut out = String::new();
    let mut rest = layout;
    let mut seen = String::new();
    while let Some((before, part, own, after)) = split_after(rest, &seen) {
        out.push_str(before);
        write(&mut out, time, part, own);
        seen = own.to_owned();
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Like [`split`], knowing the part right before: a fraction may follow seconds at once.
fn split_after<'l>(layout: &'l str, seen: &str) -> Option<(&'l str, Part, &'l str, &'l str)> {
    if let Some((part, length)) = fraction(layout, seen) {
        return Some(("", part, &layout[..length], &layout[length..]));
    }
    split(layout)
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
            while shown.len() < digits {
                shown.push('0');
            }
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

/// Reads a moment in the form a layout shows; without a zone in the text it is taken to be in `zone`.
pub fn parse(text: &str, layout: &str, zone: &TimeZone) -> Option<Zoned> {
    let (mut year, mut month, mut day, mut year_day) = (1_i16, 1_i8, 1_i8, None);
    let (mut hour, mut minute, mut second, mut nanosecond) = (0_i8, 0_i8, 0_i8, 0_i32);
    let (mut afternoon, mut offset) = (None, None);
    let mut rest = text;
    let mut layout = layout;
    let mut seen = String::new();
    while let Some((before, part, own, after)) = split_after(layout, &seen) {
        rest = rest.strip_prefix(before)?;
        match part {
            Part::MonthName => month = named(&mut rest, &MONTHS, false)?,
            Part::MonthShort => month = named(&mut rest, &MONTHS, true)?,
            Part::WeekdayName => drop(named(&mut rest, &WEEKDAYS, false)?),
            Part::WeekdayShort => drop(named(&mut rest, &WEEKDAYS, true)?),
            Part::Month { zero } => month = digits(&mut rest, if zero { 2 } else { 1 }, 2)?,
            Part::Day { fill } => {
                if fill == Fill::Blank {
                    rest = rest.trim_start_matches(' ');
                }
                day = digits(&mut rest, if fill == Fill::Zero { 2 } else { 1 }, 2)?;
            }
            Part::YearDay { .. } => year_day = Some(digits::<i16>(&mut rest, 1, 3)?),
            Part::Year => year = digits(&mut rest, 4, 4)?,
            Part::YearShort => {
                let short: i16 = digits(&mut rest, 2, 2)?;
                year = if short >= 69 {
                    1900 + short
                } else {
                    2000 + short
                };
            }
            Part::Hour24 => hour = digits(&mut rest, 2, 2)?,
            Part::Hour12 { zero } => hour = digits(&mut rest, if zero { 2 } else { 1 }, 2)?,
            Part::Minute { zero } => minute = digits(&mut rest, if zero { 2 } else { 1 }, 2)?,
            Part::Second { zero } => {
                second = digits(&mut rest, if zero { 2 } else { 1 }, 2)?;
                // A fraction is read also where the layout shows none.
                if fraction(after, own).is_none() && rest.starts_with(['.', ',']) {
                    nanosecond = subsecond(&mut rest)?;
                }
            }
            Part::HalfDay { .. } => {
                let (word, tail) = rest.split_at_checked(2)?;
                afternoon = Some(match word.to_ascii_uppercase().as_str() {
                    "PM" => true,
                    "AM" => false,
                    _ => return None,
                });
                rest = tail;
            }
            Part::ZoneName => {
                let length = rest.bytes().take_while(u8::is_ascii_uppercase).count();
                if length < 3 {
                    return None;
                }
                if matches!(&rest[..length], "UTC" | "GMT") {
                    offset = Some(Offset::UTC);
                }
                rest = &rest[length..];
            }
            Part::Offset { utc_as_z, .. } => offset = Some(zone_offset(&mut rest, utc_as_z)?),
            Part::Fraction { .. } => {
                if rest.starts_with(['.', ',']) {
                    nanosecond = subsecond(&mut rest)?;
                }
            }
        }
        seen = own.to_owned();
        layout = after;
    }
    if rest != layout {
        return None;
    }
    match afternoon {
        Some(true) if hour < 12 => hour += 12,
        Some(false) if hour == 12 => hour = 0,
        _ => {}
    }
    let date = match year_day {
        Some(number) => Date::new(year, 1, 1)
            .ok()?
            .checked_add(jiff::Span::new().days(i64::from(number) - 1))
            .ok()?,
        None => Date::new(year, month, day).ok()?,
    };
    let moment = DateTime::from_parts(date, Time::new(hour, minute, second, nanosecond).ok()?);
    let zone = offset.map_or_else(
        || zone.clone(),
        |offset| {
            if offset == Offset::UTC {
                TimeZone::UTC
            } else {
                TimeZone::fixed(offset)
            }
        },
    );
    moment.to_zoned(zone).ok()
}

fn digits<T: std::str::FromStr>(rest: &mut &str, least: usize, most: usize) -> Option<T> {
    let length = rest
        .bytes()
        .take(most)
        .take_while(u8::is_ascii_digit)
        .count();
    if length < least {
        return None;
    }
    let number = rest[..length].parse().ok();
    *rest = &rest[length..];
    number
}

/// The number, from 1, of a name the text begins with.
fn named(rest: &mut &str, names: &[&str], short: bool) -> Option<i8> {
    for (number, name) in (1..).zip(names) {
        let name = if short { &name[..3] } else { name };
        if rest
            .get(..name.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(name))
        {
            *rest = &rest[name.len()..];
            return Some(number);
        }
    }
    None
}

fn subsecond(rest: &mut &str) -> Option<i32> {
    let length = rest[1..].bytes().take_while(u8::is_ascii_digit).count();
    if length == 0 {
        return None;
    }
    let mut shown = rest[1..=length].to_owned();
    shown.truncate(9);
    while shown.len() < 9 {
        shown.push('0');
    }
    *rest = &rest[1 + length..];
    shown.parse().ok()
}

fn zone_offset(rest: &mut &str, utc_as_z: bool) -> Option<Offset> {
    if utc_as_z && let Some(after) = rest.strip_prefix('Z') {
        *rest = after;
        return Some(Offset::UTC);
    }
    let negative = match rest.bytes().next()? {
        b'+' => false,
        b'-' => true,
        _ => return None,
    };
    *rest = &rest[1..];
    let hours: i32 = digits(rest, 2, 2)?;
    if let Some(after) = rest.strip_prefix(':') {
        *rest = after;
    }
    let minutes: i32 = digits(rest, 2, 2).unwrap_or(0);
    let seconds = hours * 3600 + minutes * 60;
    Offset::from_seconds(if negative { -seconds } else { seconds }).ok()
}
