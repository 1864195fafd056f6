//! Times in the form of the protocol.

use jiff::Timestamp;
use pinion_message::Millis;

/// Returns a time as ISO 8601 with milliseconds.
pub(crate) fn iso(at: Millis) -> Option<String> {
    let at = Timestamp::from_millisecond(at).ok()?;
    Some(format!("{at:.3}"))
}

/// Returns the current time.
pub(crate) fn now() -> String {
    format!("{:.3}", Timestamp::now())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_milliseconds() {
        assert_eq!(iso(1_767_225_600_000).unwrap(), "2026-01-01T00:00:00.000Z");
    }
}
