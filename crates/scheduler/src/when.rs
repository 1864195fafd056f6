//! Times as people write them: once at a date and time, or daily at a time of day, in a named time
//! zone.

use croner::Cron;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use pinion_status::Failure;
use serde::{Deserialize, Serialize};

use crate::cron;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Recurrence {
    /// Once.
    Once,
    /// Every day.
    Daily,
}

/// The time or times of an event.
#[derive(Debug, Clone)]
pub struct When(Due);

#[derive(Debug, Clone)]
enum Due {
    Once(Timestamp),
    Daily(Box<Cron>, TimeZone),
}

impl When {
    /// Parses a time; the error explains the format.
    ///
    /// Once is an RFC 3339 time, or a date and a time in `zone`; daily is `HH:MM` or `HH:MM:SS` in
    /// `zone`. A zone has a name such as `Europe/Berlin`; an empty one is the zone of the machine.
    pub fn read(kind: Recurrence, schedule: &str, zone: &str) -> Result<Self, Failure> {
        Self::in_zone(kind, schedule, read_zone(zone)?)
    }

    fn in_zone(kind: Recurrence, schedule: &str, zone: TimeZone) -> Result<Self, Failure> {
        let due = match kind {
            Recurrence::Once => Due::Once(moment(schedule.trim(), zone)?),
            Recurrence::Daily => Due::Daily(Box::new(time_of_day(schedule.trim())?), zone),
        };
        Ok(Self(due))
    }

    /// Returns the first time after `now`, if there is one.
    ///
    /// A time of day that is skipped when clocks change is replaced by the next existing moment;
    /// one that occurs twice is used once.
    pub fn next(&self, now: Timestamp) -> Option<Timestamp> {
        match &self.0 {
            Due::Once(at) => Some(*at).filter(|at| *at > now),
            Due::Daily(cron, zone) => cron::next(cron, &Zoned::new(now, zone.clone())),
        }
    }
}

fn read_zone(name: &str) -> Result<TimeZone, Failure> {
    match name {
        "" => Ok(pinion_text::zone::local()),
        name => pinion_text::zone::named(name).ok_or_else(|| {
            Failure::invalid(format!(
                "unknown timezone {name:?}; write it like \"Europe/Berlin\" or \"UTC\""
            ))
        }),
    }
}

fn moment(text: &str, zone: TimeZone) -> Result<Timestamp, Failure> {
    if let Ok(at) = text.parse::<Timestamp>() {
        return Ok(at);
    }
    // A date alone is not a time.
    let local = Some(text).filter(|text| text.contains(':'));
    let local = local.and_then(|text| text.parse::<DateTime>().ok());
    let at = local.and_then(|local| local.to_zoned(zone).ok());
    at.map(|at| at.timestamp()).ok_or_else(|| {
        Failure::invalid(format!(
            "schedule is {text:?}: type once requires a time such as \"2030-01-31T09:00:00Z\", or \"2030-01-31T09:00\" in its timezone"
        ))
    })
}

fn time_of_day(text: &str) -> Result<Cron, Failure> {
    let number = |text: &str, most: u8| {
        let is_short = (1..=2).contains(&text.len()) && text.bytes().all(|it| it.is_ascii_digit());
        let number = text.parse().ok().filter(|_| is_short);
        number.filter(|number: &u8| *number <= most)
    };
    let parts: Vec<&str> = text.split(':').collect();
    let (hour, minute, second) = match parts[..] {
        [hour, minute] => (hour, minute, "0"),
        [hour, minute, second] => (hour, minute, second),
        _ => ("", "", ""),
    };
    match (number(hour, 23), number(minute, 59), number(second, 59)) {
        (Some(hour), Some(minute), Some(second)) => {
            cron::parse(&format!("{second} {minute} {hour} * * *"))
        }
        _ => Err(Failure::invalid(format!(
            "schedule is {text:?}: type daily requires a time of day such as \"08:30\" or \"08:30:00\""
        ))),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Berlin, Tokyo and Greenwich, without zone files.
    const CET: &str = "CET-1CEST,M3.5.0,M10.5.0/3";
    const JST: &str = "JST-9";
    const UTC: &str = "UTC0";

    fn next(kind: Recurrence, schedule: &str, zone: &str, now: &str) -> Option<String> {
        let zone = TimeZone::posix(zone).unwrap();
        let when = When::in_zone(kind, schedule, zone).unwrap();
        let next = when.next(now.parse().unwrap());
        next.map(|next| next.to_string())
    }

    #[test]
    fn once_is_a_moment_with_an_offset_or_in_its_zone() {
        let now = "2026-03-01T00:00:00Z";
        for (schedule, zone, at) in [
            ("2026-03-01T09:00:00Z", CET, "2026-03-01T09:00:00Z"),
            ("2026-03-01T09:00:00+01:00", UTC, "2026-03-01T08:00:00Z"),
            ("2026-03-01T09:00", UTC, "2026-03-01T09:00:00Z"),
            (" 2026-03-01 09:00:30 ", CET, "2026-03-01T08:00:30Z"),
            ("2026-07-01T09:00", CET, "2026-07-01T07:00:00Z"),
        ] {
            let found = next(Recurrence::Once, schedule, zone, now);
            assert_eq!(found.as_deref(), Some(at), "{schedule} {zone}");
        }
        assert_eq!(next(Recurrence::Once, now, UTC, now), None);
    }

    #[test]
    fn daily_is_the_next_time_of_day_in_its_zone() {
        for (schedule, zone, now, at) in [
            ("08:30", UTC, "2026-03-01T08:00:00Z", "2026-03-01T08:30:00Z"),
            ("8:30", UTC, "2026-03-01T08:30:00Z", "2026-03-02T08:30:00Z"),
            (
                "23:59:59",
                UTC,
                "2026-12-31T23:59:59.5Z",
                "2027-01-01T23:59:59Z",
            ),
            ("00:00", JST, "2026-03-01T12:00:00Z", "2026-03-01T15:00:00Z"),
        ] {
            let found = next(Recurrence::Daily, schedule, zone, now);
            assert_eq!(found.as_deref(), Some(at), "{schedule} {zone} {now}");
        }
    }

    #[test]
    fn a_time_of_day_keeps_its_hour_when_clocks_are_set() {
        let berlin = |schedule, now| next(Recurrence::Daily, schedule, CET, now).unwrap();
        assert_eq!(
            berlin("09:00", "2026-03-28T08:00:00Z"),
            "2026-03-29T07:00:00Z"
        );
        // The time does not exist on this day.
        assert_eq!(
            berlin("02:30", "2026-03-28T12:00:00Z"),
            "2026-03-29T01:00:00Z"
        );
        // The time occurs twice on this day.
        assert_eq!(
            berlin("02:30", "2026-10-24T12:00:00Z"),
            "2026-10-25T00:30:00Z"
        );
        assert_eq!(
            berlin("02:30", "2026-10-25T00:30:00Z"),
            "2026-10-26T01:30:00Z"
        );
    }

    #[test]
    fn what_is_no_time_says_how_one_is_written() {
        for schedule in [
            "",
            "tomorrow",
            "2026-03-01",
            "09:00",
            "2026-02-30T09:00",
            "2026-03-01T25:00Z",
        ] {
            let failure = When::read(Recurrence::Once, schedule, "UTC").unwrap_err();
            assert_eq!(failure.code(), "invalid_argument", "{schedule}");
            assert!(
                failure.message.contains("once requires a time such as"),
                "{failure}"
            );
        }
        for schedule in [
            "",
            "8",
            "24:00",
            "08:60",
            "08:30:60",
            "+8:30",
            "08:30:00:00",
            "8:030",
            "noon",
        ] {
            let failure = When::read(Recurrence::Daily, schedule, "UTC").unwrap_err();
            assert_eq!(failure.code(), "invalid_argument", "{schedule}");
            assert!(failure.message.contains("such as \"08:30\""), "{failure}");
        }
        let failure = When::read(Recurrence::Daily, "08:30", "Mars/Base").unwrap_err();
        assert!(
            failure.message.contains("unknown timezone \"Mars/Base\""),
            "{failure}"
        );
    }

    proptest! {
        #[test]
        fn any_text_is_a_time_or_none(text in "[-+:0-9TZ ]{0,24}") {
            for kind in [Recurrence::Once, Recurrence::Daily] {
                let now = Timestamp::now();
                if let Ok(when) = When::read(kind, &text, "UTC") {
                    prop_assert!(when.next(now).is_none_or(|next| next > now));
                }
            }
        }
    }
}
