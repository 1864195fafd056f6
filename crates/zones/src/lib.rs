//! Time zones by their names, such as `Europe/Berlin`, as the machine has their rules; and the zone the program is in.

use std::path::Path;

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

/// Where machines keep the rules of time zones.
const RULES: &str = "/usr/share/zoneinfo";

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
    said(std::env::var("TZ").ok().as_deref()).unwrap_or_else(TimeZone::system)
}

/// The time in that zone.
pub fn now() -> Zoned {
    Timestamp::now().to_zoned(local())
}

/// The zone that `TZ` names. Whatever else it may say is known to the library.
fn said(variable: Option<&str>) -> Option<TimeZone> {
    let name = variable?;
    named(name.strip_prefix(':').unwrap_or(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_is_known_by_its_name() {
        for name in ["utc", ":UTC"] {
            assert_eq!(said(Some(name)), Some(TimeZone::UTC));
        }
        for other in [None, Some(""), Some("CET-1CEST,M3.5.0,M10.5.0/3")] {
            assert_eq!(said(other), None);
        }
        // Not every machine has the rules.
        if Path::new(RULES).join("Asia/Tokyo").exists() {
            let tokyo = said(Some("Asia/Tokyo")).unwrap();
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
