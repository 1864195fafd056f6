//! Sprig's functions on times.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, Zoned};

use super::conversion::to_int;
use super::{Arguments, Function, Outcome, Scope, exactly, text_value};
use crate::layout;
use crate::time;
use crate::value::Value;

pub(super) const TABLE: &[Function] = &[
    exactly("now", 0, |scope, _| {
        Ok(Value::time(scope.context.now.clone()))
    }),
    exactly("date", 2, |scope, args| {
        text_value(layout::format(&moment(scope, args.get(1)), args.text(0)?))
    }),
    exactly("dateInZone", 3, date_in_zone),
    exactly("date_in_zone", 3, date_in_zone),
    exactly("htmlDate", 1, |scope, args| {
        text_value(layout::format(&moment(scope, args.get(0)), "2006-01-02"))
    }),
    exactly("htmlDateInZone", 2, |scope, args| {
        let time = moment(scope, args.get(0)).with_time_zone(zone(args.text(1)?));
        text_value(layout::format(&time, "2006-01-02"))
    }),
    exactly("dateModify", 2, |scope, args| modified(scope, args, false)),
    exactly("date_modify", 2, |scope, args| modified(scope, args, false)),
    exactly("mustDateModify", 2, |scope, args| {
        modified(scope, args, true)
    }),
    exactly("must_date_modify", 2, |scope, args| {
        modified(scope, args, true)
    }),
    exactly("mustToDate", 2, |scope, args| {
        let zone = scope.context.now.time_zone();
        match layout::parse(args.text(1)?, args.text(0)?, zone) {
            Some(time) => Ok(Value::time(time)),
            None => Err(format!(
                "{:?} is not a time of the form {:?}",
                args.text(1)?,
                args.text(0)?
            )),
        }
    }),
    exactly("unixEpoch", 1, |scope, args| {
        text_value(
            moment(scope, args.get(0))
                .timestamp()
                .as_second()
                .to_string(),
        )
    }),
    exactly("duration", 1, |_, args| {
        text_value(time::duration(
            i128::from(to_int(args.get(0))) * 1_000_000_000,
        ))
    }),
    exactly("durationRound", 1, duration_round),
    exactly("ago", 1, |scope, args| {
        let passed = elapsed(scope, &moment(scope, args.get(0)));
        text_value(time::duration(passed / 1_000_000_000 * 1_000_000_000))
    }),
];

/// Converts a value to a time: a time itself, or seconds since 1970; anything else is the current
/// time.
fn moment(scope: &Scope<'_>, value: &Value) -> Zoned {
    let now = &scope.context.now;
    match value {
        Value::Time(time) => (**time).clone(),
        Value::Int(seconds) => Timestamp::from_second(*seconds).map_or_else(
            |_| now.clone(),
            |stamp| stamp.to_zoned(now.time_zone().clone()),
        ),
        _ => now.clone(),
    }
}

fn zone(name: &str) -> TimeZone {
    match name {
        "Local" => TimeZone::system(),
        _ => pinion_text::zone::named(name).unwrap_or(TimeZone::UTC),
    }
}

fn date_in_zone(scope: &mut Scope<'_>, args: &Arguments<'_>) -> Outcome {
    let time = moment(scope, args.get(1)).with_time_zone(zone(args.text(2)?));
    text_value(layout::format(&time, args.text(0)?))
}

fn modified(scope: &Scope<'_>, args: &Arguments<'_>, must: bool) -> Outcome {
    let time = moment(scope, args.get(1));
    let changed = time::parse_duration(args.text(0)?)
        .and_then(|nanoseconds| i64::try_from(nanoseconds).ok())
        .and_then(|nanoseconds| {
            time.checked_add(SignedDuration::from_nanos(nanoseconds))
                .ok()
        });
    match changed {
        Some(changed) => Ok(Value::time(changed)),
        None if must => Err(format!(
            "{:?} is not a duration such as \"-1.5h\" or \"2h45m\"",
            args.text(0)?
        )),
        None => Ok(Value::time(time)),
    }
}

fn elapsed(scope: &Scope<'_>, time: &Zoned) -> i128 {
    let now = scope.context.now.timestamp().as_nanosecond();
    now - time.timestamp().as_nanosecond()
}

/// Prints the largest unit alone: `2h`, `3d`, `4mo`.
fn duration_round(scope: &mut Scope<'_>, args: &Arguments<'_>) -> Outcome {
    let nanoseconds = match args.get(0) {
        Value::String(text) => time::parse_duration(text).unwrap_or(0),
        Value::Int(number) => i128::from(*number),
        Value::Time(time) => elapsed(scope, time),
        _ => 0,
    };
    let seconds = nanoseconds.unsigned_abs() / 1_000_000_000;
    let sign = if nanoseconds < 0 { "-" } else { "" };
    let units = [
        (31_536_000, "y"),
        (2_592_000, "mo"),
        (86_400, "d"),
        (3_600, "h"),
        (60, "m"),
        (1, "s"),
    ];
    let found = units.into_iter().find(|(size, _)| seconds >= *size);
    text_value(match found {
        Some((size, unit)) => format!("{sign}{}{unit}", seconds / size),
        None => "0s".to_owned(),
    })
}
