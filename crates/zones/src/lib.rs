//! Time zones by their names, such as `Europe/Berlin`, as the machine has their rules; and the zone the program is in.

use std::path::Path;

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

/// Where machines keep the rules of time zones.
const RULES: &str = "/usr/share/zoneinfo";
/// What leads to those of the machine's own zone.
const MACHINE: &str = "/etc/localtime";

/// The zone of this name, if the machine knows it. `UTC` is known to every machine.
///
/// Reads the one file of the zone: an index of all of them, as libraries make it, would cost every start of the program.
pub fn named(name: &str) -> Option<TimeZone> {
    if name.eq_ignore_ascii_case("utc") {
        return Some(TimeZone::UTC);
    }
    let is_plain = |part: &str| {
        let letters = |letter: char| letter.is_ascii_alphanumeric() || "_-+".contains(letter);
        !part.is_empty() && part.chars().all(letters)
    };
    if !name.split('/').all(is_plain) {
        return None;
    }
    let rules = std::fs::read(Path::new(RULES).join(name)).ok()?;
    TimeZone::tzif(name, &rules).ok()
}

/// The zone of the machine, or the one that `TZ` says.
pub fn local() -> TimeZone {
    match std::env::var("TZ") {
        // Whatever else it may say is known to the library.
        Ok(variable) => said(&variable).unwrap_or_else(TimeZone::system),
        Err(_) => of_machine().unwrap_or_else(TimeZone::system),
    }
}

/// The zone whose rules the machine goes by, from that one file.
fn of_machine() -> Option<TimeZone> {
    let name = std::fs::read_link(MACHINE).ok()?;
    named(name.strip_prefix(RULES).ok()?.to_str()?)
}

/// The time in that zone.
pub fn now() -> Zoned {
    Timestamp::now().to_zoned(local())
}

/// The zone that `TZ` names.
fn said(variable: &str) -> Option<TimeZone> {
    named(variable.strip_prefix(':').unwrap_or(variable))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_is_known_by_its_name() {
        for name in ["utc", ":UTC"] {
            assert_eq!(said(name), Some(TimeZone::UTC));
        }
        for other in ["", "CET-1CEST,M3.5.0,M10.5.0/3"] {
            assert_eq!(said(other), None);
        }
        // Not every machine has the rules.
        if Path::new(RULES).join("Asia/Tokyo").exists() {
            let tokyo = said("Asia/Tokyo").unwrap();
            assert_eq!(tokyo.to_offset(Timestamp::UNIX_EPOCH).seconds(), 9 * 3600);
        }
    }

    #[test]
    fn what_is_no_name_of_a_zone_is_none() {
        for name in [
            "",
            "/",
            "Mars/Base",
            "../zoneinfo/UTC",
            "/etc/localtime",
            "Europe",
            "tzdata.zi",
        ] {
            assert!(named(name).is_none(), "{name}");
        }
    }
}
