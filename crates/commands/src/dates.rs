//! Parses dates as people write them.

use jiff::civil::Weekday;
use jiff::tz::TimeZone;
use jiff::{Span, Zoned};
use pinion_templates::parse_time;

/// Formats with a date, tried in order; the comments show Go's example of each.
const LAYOUTS: &[&str] = &[
    "2006-01-02T15:04:05Z07:00",
    "2006-01-02T15:04:05",
    "2006-01-02T15:04Z07:00",
    "2006-01-02T15:04",
    "2006-01-02 15:04:05 -0700 MST",
    "2006-01-02 15:04:05Z07:00",
    "2006-01-02 15:04:05",
    "2006-01-02 15:04",
    "2006-01-02",
    "2006/01/02 15:04:05",
    "2006/01/02",
    "01/02/2006",
    "02.01.2006",
    "Mon, 02 Jan 2006 15:04:05 -0700",
    "Mon, 02 Jan 2006 15:04:05 MST",
    "Monday, 02-Jan-06 15:04:05 MST",
    "Mon Jan _2 15:04:05 2006",
    "Mon Jan _2 15:04:05 MST 2006",
    "02 Jan 06 15:04 MST",
    "02 Jan 06 15:04 -0700",
    "2 January 2006",
    "2 Jan 2006",
    "January 2, 2006",
    "Jan 2, 2006",
    "January 2 2006",
    "Jan 2 2006",
    "20060102",
];

/// Parses a date: ISO, RFC 3339, RFC 1123 and similar forms, or words such as `yesterday`, `3 days ago`, `next friday`.
/// Dates without a time are at midnight; dates without a zone are in the zone of `now`.
pub fn parse_date(text: &str, now: &Zoned) -> Option<Zoned> {
    let text = text.trim();
    LAYOUTS
        .iter()
        .find_map(|layout| parse_time(text, layout, now.time_zone()))
        .or_else(|| {
            text.strip_prefix('@')?
                .parse::<i64>()
                .ok()
                .and_then(|seconds| at(seconds, now))
        })
        .or_else(|| words(&text.to_lowercase(), now))
}

fn at(seconds: i64, now: &Zoned) -> Option<Zoned> {
    let stamp = jiff::Timestamp::from_second(seconds).ok()?;
    Some(stamp.to_zoned(now.time_zone().clone()))
}

fn midnight(time: &Zoned) -> Option<Zoned> {
    time.start_of_day().ok()
}

fn words(text: &str, now: &Zoned) -> Option<Zoned> {
    let words: Vec<&str> = text
        .split(|c: char| c.is_whitespace() || c == ',')
        .filter(|word| !word.is_empty() && *word != "the" && *word != "on")
        .collect();
    // A time of day may follow a day: `tomorrow at 15:30`.
    if let Some((clock, day)) = words.split_last()
        && let Some((hour, minute)) = time_of_day(clock)
    {
        let day = day.strip_suffix(&["at"]).unwrap_or(day);
        let base = if day.is_empty() {
            midnight(now)?
        } else {
            date(day, now)?
        };
        return midnight(&base)?
            .checked_add(Span::new().hours(hour).minutes(minute))
            .ok();
    }
    date(&words, now)
}

fn date(words: &[&str], now: &Zoned) -> Option<Zoned> {
    match words {
        ["now"] => Some(now.clone()),
        ["today"] => midnight(now),
        ["tomorrow"] => midnight(&shifted(now, 1, "day")?),
        ["yesterday"] => midnight(&shifted(now, -1, "day")?),
        ["day", "before", "yesterday"] => midnight(&shifted(now, -2, "day")?),
        ["day", "after", "tomorrow"] => midnight(&shifted(now, 2, "day")?),
        [count, unit, "ago"] => shifted(now, -number(count)?, unit),
        ["in", count, unit] | [count, unit, "from", "now"] | [count, unit, "later"] => {
            shifted(now, number(count)?, unit)
        }
        ["last" | "past", unit @ ("day" | "week" | "month" | "year")] => shifted(now, -1, unit),
        ["next", unit @ ("day" | "week" | "month" | "year")] => shifted(now, 1, unit),
        ["last" | "past", day] => weekday(day, now, Direction::Back),
        ["next" | "this" | "coming", day] => weekday(day, now, Direction::Forward),
        [day] => weekday(day, now, Direction::Forward),
        _ => None,
    }
}

fn number(word: &str) -> Option<i64> {
    const WORDS: [&str; 13] = [
        "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
        "eleven", "twelve",
    ];
    match word {
        "a" | "an" => Some(1),
        _ => word.parse::<u32>().ok().map(i64::from).or_else(|| {
            WORDS
                .iter()
                .position(|known| *known == word)
                .map(|n| n as i64)
        }),
    }
}

fn shifted(now: &Zoned, count: i64, unit: &str) -> Option<Zoned> {
    let span = Span::new();
    let span = match unit.strip_suffix('s').unwrap_or(unit) {
        "second" | "sec" => span.try_seconds(count),
        "minute" | "min" => span.try_minutes(count),
        "hour" | "h" => span.try_hours(count),
        "day" => span.try_days(count),
        "week" => span.try_weeks(count),
        "fortnight" => span.try_weeks(count.checked_mul(2)?),
        "month" => span.try_months(count),
        "year" => span.try_years(count),
        _ => return None,
    };
    now.checked_add(span.ok()?).ok()
}

#[derive(Clone, Copy)]
enum Direction {
    Back,
    Forward,
}

/// Returns the nearest such day before or after today.
fn weekday(word: &str, now: &Zoned, direction: Direction) -> Option<Zoned> {
    const DAYS: [(&str, Weekday); 7] = [
        ("monday", Weekday::Monday),
        ("tuesday", Weekday::Tuesday),
        ("wednesday", Weekday::Wednesday),
        ("thursday", Weekday::Thursday),
        ("friday", Weekday::Friday),
        ("saturday", Weekday::Saturday),
        ("sunday", Weekday::Sunday),
    ];
    let (_, day) = DAYS
        .iter()
        .find(|(name, _)| *name == word || (word.len() >= 3 && name.starts_with(word)))?;
    let count = match direction {
        Direction::Back => -1,
        Direction::Forward => 1,
    };
    let date = now.date().nth_weekday(count, *day).ok()?;
    midnight(&date.to_zoned(zone(now)).ok()?)
}

fn zone(now: &Zoned) -> TimeZone {
    now.time_zone().clone()
}

/// Parses `15:30`, `3pm`, `3:30pm`, `noon`, `midnight`.
fn time_of_day(word: &str) -> Option<(i64, i64)> {
    match word {
        "noon" => return Some((12, 0)),
        "midnight" => return Some((0, 0)),
        _ => {}
    }
    let (clock, half) = match (word.strip_suffix("am"), word.strip_suffix("pm")) {
        (Some(clock), _) => (clock, Some(false)),
        (_, Some(clock)) => (clock, Some(true)),
        _ => (word, None),
    };
    let (hour, minute) = match clock.split_once(':') {
        Some((hour, minute)) => (hour.parse::<i64>().ok()?, minute.parse::<i64>().ok()?),
        None if half.is_some() => (clock.parse().ok()?, 0),
        None => return None,
    };
    let hour = match half {
        Some(true) if hour < 12 => hour + 12,
        Some(false) if hour == 12 => 0,
        _ => hour,
    };
    ((0..24).contains(&hour) && (0..60).contains(&minute)).then_some((hour, minute))
}
