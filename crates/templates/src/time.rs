//! Times: their printed form, and the methods that a template may call on them.

use jiff::tz::TimeZone;
use jiff::{Span, Zoned};

use crate::layout;
use crate::value::Value;

/// Prints a time as Go does: `2026-11-16 07:10:28 +0000 UTC`.
pub(crate) fn shown(time: &Zoned) -> String {
    layout::format(time, "2006-01-02 15:04:05.999999999 -0700 MST")
}

/// Prints a time as in JSON.
pub(crate) fn rfc3339(time: &Zoned) -> String {
    layout::format(time, "2006-01-02T15:04:05.999999999Z07:00")
}

/// Returns the short name of a time's zone; its offset if the zone has no name.
pub(crate) fn zone_name(time: &Zoned) -> String {
    let info = time.time_zone().to_offset_info(time.timestamp());
    let name = info.abbreviation();
    if name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        name.to_owned()
    } else if time.offset().seconds() == 0 {
        "UTC".to_owned()
    } else {
        layout::format(time, "-0700")
    }
}

/// Calls a method of a time, such as `.Format "2006-01-02"`.
pub(crate) fn method(time: &Zoned, name: &str, arguments: &[Value]) -> Result<Value, String> {
    let expected = |kinds: &str| {
        format!(
            "`.{name}` of a time expects {kinds}, {} given",
            match arguments.len() {
                0 => "nothing was".to_owned(),
                1 => format!("{} was", arguments[0].described()),
                many => format!("{many} arguments were"),
            }
        )
    };
    let moment = |made: Result<Zoned, jiff::Error>| match made {
        Ok(time) => Ok(Value::time(time)),
        Err(_) => Err(format!("`.{name}`: the result is not a date")),
    };
    match (name, arguments) {
        ("Format", [Value::String(form)]) => Ok(Value::text(layout::format(time, form))),
        ("Format", _) => Err(expected("a layout such as \"2006-01-02\"")),
        ("AddDate", [Value::Int(years), Value::Int(months), Value::Int(days)]) => moment(
            Span::new()
                .try_years(*years)
                .and_then(|span| span.try_months(*months))
                .and_then(|span| time.checked_add(span))
                .and_then(|time| time.checked_add(Span::new().try_days(*days)?)),
        ),
        ("AddDate", _) => Err(expected("years, months and days")),
        ("Before", [Value::Time(other)]) => Ok(Value::Bool(time.timestamp() < other.timestamp())),
        ("After", [Value::Time(other)]) => Ok(Value::Bool(time.timestamp() > other.timestamp())),
        ("Equal", [Value::Time(other)]) => Ok(Value::Bool(time.timestamp() == other.timestamp())),
        ("Before" | "After" | "Equal", _) => Err(expected("a time")),
        (_, [_, ..]) => Err(expected("no argument")),
        ("Year", []) => Ok(Value::Int(time.year().into())),
        ("Month", []) => Ok(Value::text(layout::format(time, "January"))),
        ("Day", []) => Ok(Value::Int(time.day().into())),
        ("Hour", []) => Ok(Value::Int(time.hour().into())),
        ("Minute", []) => Ok(Value::Int(time.minute().into())),
        ("Second", []) => Ok(Value::Int(time.second().into())),
        ("Nanosecond", []) => Ok(Value::Int(time.subsec_nanosecond().into())),
        ("Weekday", []) => Ok(Value::text(layout::format(time, "Monday"))),
        ("YearDay", []) => Ok(Value::Int(time.day_of_year().into())),
        ("Unix", []) => Ok(Value::Int(time.timestamp().as_second())),
        ("UnixMilli", []) => Ok(Value::Int(time.timestamp().as_millisecond())),
        ("String", []) => Ok(Value::text(shown(time))),
        ("UTC", []) => Ok(Value::time(time.with_time_zone(TimeZone::UTC))),
        ("Local", []) => Ok(Value::time(time.with_time_zone(TimeZone::system()))),
        ("IsZero", []) => Ok(Value::Bool(time.year() == 1 && time.day_of_year() == 1)),
        _ => Err(format!(
            "a time has no `.{name}`: expected .Format, .Year, .Month, .Day, .Hour, .Minute, .Second, .Weekday, \
             .YearDay, .Unix, .AddDate, .Before, .After, .Equal, .UTC or .Local"
        )),
    }
}

/// Parses a duration in Go's form (`1h30m`, `-2.5s`), in nanoseconds.
pub(crate) fn parse_duration(text: &str) -> Option<i128> {
    let (negative, mut rest) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total = 0.0_f64;
    while !rest.is_empty() {
        let length = rest
            .bytes()
            .take_while(|b| b.is_ascii_digit() || *b == b'.')
            .count();
        let number: f64 = rest[..length].parse().ok()?;
        rest = &rest[length..];
        let (unit, size) = [
            ("ns", 1.0),
            ("us", 1e3),
            ("µs", 1e3),
            ("ms", 1e6),
            ("s", 1e9),
            ("m", 60e9),
            ("h", 3600e9),
        ]
        .into_iter()
        .find(|(unit, _)| rest.starts_with(unit))?;
        rest = &rest[unit.len()..];
        total += number * size;
    }
    let nanoseconds = total.round();
    (nanoseconds < 9.2e18).then_some(if negative {
        -(nanoseconds as i128)
    } else {
        nanoseconds as i128
    })
}

/// Prints a duration as Go does: `1h2m3s`.
pub(crate) fn duration(nanoseconds: i128) -> String {
    let sign = if nanoseconds < 0 { "-" } else { "" };
    let size = nanoseconds.unsigned_abs();
    let trimmed = |whole: u128, fraction: u128, digits: usize| {
        let mut text = format!("{whole}.{fraction:0digits$}");
        text.truncate(text.trim_end_matches('0').trim_end_matches('.').len());
        text
    };
    if size == 0 {
        return "0s".to_owned();
    }
    if size < 1_000 {
        return format!("{sign}{size}ns");
    }
    if size < 1_000_000 {
        return format!("{sign}{}µs", trimmed(size / 1_000, size % 1_000, 3));
    }
    if size < 1_000_000_000 {
        return format!("{sign}{}ms", trimmed(size / 1_000_000, size % 1_000_000, 6));
    }
    let (seconds, fraction) = (size / 1_000_000_000, size % 1_000_000_000);
    let mut out = sign.to_owned();
    if seconds >= 3600 {
        out.push_str(&format!("{}h", seconds / 3600));
    }
    if seconds >= 60 {
        out.push_str(&format!("{}m", seconds / 60 % 60));
    }
    out.push_str(&trimmed(seconds % 60, fraction, 9));
    out.push('s');
    out
}
