//! Time zones by name, such as `Europe/Berlin`, from the machine's rules; and the zone of this
//! process.

use std::path::Path;

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

/// The directory of the machine's time zone rules.
const RULES_DIRECTORY: &str = "/usr/share/zoneinfo";
/// A symbolic link to the rules of the machine's own zone.
const LOCAL_ZONE_LINK: &str = "/etc/localtime";

/// Returns the zone of this name if the machine has its rules. `UTC` always exists.
///
/// It reads only the file of that zone: an index of all zones, as libraries build it, would slow
/// every start of the program.
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
    let rules = std::fs::read(Path::new(RULES_DIRECTORY).join(name)).ok()?;
    TimeZone::tzif(name, &rules).ok()
}

/// Returns the zone that `TZ` names, or the zone of the machine.
pub fn local() -> TimeZone {
    match std::env::var("TZ") {
        // The library parses every other form of `TZ`.
        Ok(variable) => from_variable(&variable).unwrap_or_else(TimeZone::system),
        Err(_) => machine_zone().unwrap_or_else(TimeZone::system),
    }
}

/// Returns the zone of the machine from its one file.
fn machine_zone() -> Option<TimeZone> {
    let name = std::fs::read_link(LOCAL_ZONE_LINK).ok()?;
    named(name.strip_prefix(RULES_DIRECTORY).ok()?.to_str()?)
}

/// Returns the current time in the zone of this process.
pub fn now() -> Zoned {
    Timestamp::now().to_zoned(local())
}

/// Returns the zone that `TZ` names.
fn from_variable(variable: &str) -> Option<TimeZone> {
    named(variable.strip_prefix(':').unwrap_or(variable))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_is_known_by_its_name() {
        for name in ["utc", ":UTC"] {
            assert_eq!(from_variable(name), Some(TimeZone::UTC));
        }
        for other in ["", "CET-1CEST,M3.5.0,M10.5.0/3"] {
            assert_eq!(from_variable(other), None);
        }
        // Not every machine has the rules.
        if Path::new(RULES_DIRECTORY).join("Asia/Tokyo").exists() {
            let tokyo = from_variable("Asia/Tokyo").unwrap();
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
