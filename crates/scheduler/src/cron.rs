//! Times of calls: five fields as in cron, or six with seconds first, in the time zone of the
//! machine.

use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use jiff::{Timestamp, Zoned};
use pinion_status::Failure;

/// The longest cron line, in bytes.
const MAX_LINE_BYTES: usize = 256;

/// Parses a line; the error explains the format.
pub(crate) fn parse(text: &str) -> Result<Cron, Failure> {
    let wrong = |why: &str| {
        Failure::invalid(format!(
            "{text:?} is not a cron line: {why}. It has five fields (minute hour day month weekday), such as \"*/5 * * * *\", or six with seconds first"
        ))
    };
    if text.len() > MAX_LINE_BYTES {
        return Err(Failure::invalid(format!(
            "cron has at most {MAX_LINE_BYTES} bytes"
        )));
    }
    let parser = CronParser::builder()
        .seconds(Seconds::Optional)
        .year(Year::Disallowed)
        .build();
    let cron = parser
        .parse(text)
        .map_err(|_| wrong(&problem(&parser, text)))?;
    // February 30 parses but never comes.
    match next(&cron, &pinion_text::zone::now()) {
        Some(_) => Ok(cron),
        None => Err(wrong("there is no such time")),
    }
}

/// Names the invalid field of a line. The parser's own errors name its internals.
fn problem(parser: &CronParser, text: &str) -> String {
    const FIELDS: [&str; 6] = ["second", "minute", "hour", "day", "month", "weekday"];
    let fields: Vec<&str> = text.split_whitespace().collect();
    let Some(names) = FIELDS
        .len()
        .checked_sub(fields.len())
        .filter(|missing| *missing < 2)
        .and_then(|missing| FIELDS.get(missing..))
    else {
        return match fields.len() {
            1 => "it has 1 field".to_owned(),
            count => format!("it has {count} fields"),
        };
    };
    let alone = |at: usize| {
        let mut line = vec!["*"; fields.len()];
        line[at] = fields[at];
        line.join(" ")
    };
    let bad = (0..fields.len()).find(|at| parser.parse(&alone(*at)).is_err());
    match bad {
        Some(at) => format!("the {} {:?} is not valid", names[at], fields[at]),
        None => "the fields do not fit together".to_owned(),
    }
}

/// Returns the first time after `now`, if there is one.
pub(crate) fn next(cron: &Cron, now: &Zoned) -> Option<Timestamp> {
    let next = cron.find_next_occurrence(now, false).ok()?;
    Some(next.timestamp())
}

#[cfg(test)]
mod tests {
    use jiff::civil::DateTime;
    use jiff::tz::TimeZone;
    use proptest::prelude::*;

    use super::*;

    fn after(line: &str, now: &str, zone: &TimeZone) -> String {
        let now: DateTime = now.parse().unwrap();
        let now = now.to_zoned(zone.clone()).unwrap();
        let next = next(&parse(line).unwrap(), &now).unwrap();
        next.to_zoned(zone.clone()).strftime("%F %T").to_string()
    }

    #[test]
    fn an_error_names_the_field() {
        for (line, words) in [
            ("", "\"\" is not a cron line: it has 0 fields. "),
            ("noon", "it has 1 field. It has five"),
            ("* * *", "it has 3 fields. "),
            ("* * * * * * *", "it has 7 fields. "),
            ("99 * * * *", "the minute \"99\" is not valid. "),
            ("0 25 * * *", "the hour \"25\" is not valid. "),
            ("0 0 * foo *", "the month \"foo\" is not valid. "),
            ("77 0 0 * * *", "the second \"77\" is not valid. "),
            ("0 0 30 2 *", "there is no such time. "),
        ] {
            let error = parse(line).unwrap_err();
            assert!(error.message.contains(words), "{line}: {}", error.message);
        }
    }

    #[test]
    fn five_fields_and_six() {
        for (line, next) in [
            ("*/5 * * * *", "2026-03-01 10:10:00"),
            ("0 9 * * 1-5", "2026-03-02 09:00:00"),
            ("30 8 1 JAN *", "2027-01-01 08:30:00"),
            ("0 0 29 2 *", "2028-02-29 00:00:00"),
            ("*/20 * * * * *", "2026-03-01 10:07:40"),
            ("@daily", "2026-03-02 00:00:00"),
        ] {
            let found = after(line, "2026-03-01T10:07:30", &TimeZone::UTC);
            assert_eq!(found, next, "{line}");
        }
    }

    #[test]
    fn an_hour_that_is_left_out_or_comes_twice_is_met_once() {
        let berlin = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        let spring = after("30 2 * * *", "2026-03-28T12:00:00", &berlin);
        assert_eq!(spring, "2026-03-29 03:00:00");
        let autumn = after("30 2 * * *", "2026-10-25T02:30:00", &berlin);
        assert_eq!(autumn, "2026-10-26 02:30:00");
    }

    #[test]
    fn what_is_no_time_says_how_one_is_written() {
        for line in [
            "",
            "* * * *",
            "61 * * * *",
            "* * * * * * *",
            "0 0 30 2 *",
            "every day",
        ] {
            let failure = parse(line).unwrap_err();
            assert_eq!(failure.code(), "invalid_argument", "{line}");
            assert!(failure.message.contains("five fields"), "{failure}");
        }
        assert!(parse(&"*".repeat(1000)).is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_a_time_or_none(text in "[-*/,0-9A-Za-z@#? ]{0,24}") {
            if let Ok(cron) = parse(&text) {
                let now = Zoned::now();
                prop_assert!(next(&cron, &now).is_some_and(|next| next > now.timestamp()));
            }
        }
    }
}
