//! Parsing of times.

use jiff::Zoned;
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{Offset, TimeZone};

use super::{Fill, MONTHS, Part, WEEKDAYS, fraction, split};

/// Parses a time by a layout. A text without a zone is in `zone`.
pub fn parse(text: &str, layout: &str, zone: &TimeZone) -> Option<Zoned> {
    let (mut year, mut month, mut day, mut year_day) = (1_i16, 1_i8, 1_i8, None);
    let (mut hour, mut minute, mut second, mut nanosecond) = (0_i8, 0_i8, 0_i8, 0_i32);
    let (mut afternoon, mut offset) = (None, None);
    let mut rest = text;
    let mut layout = layout;
    while let Some((before, part, _, after)) = split(layout) {
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
                // A fraction is accepted even if the layout has none.
                if fraction(after).is_none() && rest.starts_with(['.', ',']) {
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

/// Parses a name at the start of the text and returns its number, from 1.
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
