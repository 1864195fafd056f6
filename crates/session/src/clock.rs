//! Times as session files write them: ISO 8601, UTC, three decimals, `Z`.

use jiff::Timestamp;
use jiff::fmt::temporal::DateTimePrinter;
use pinion_message::Millis;

static PRINTER: DateTimePrinter = DateTimePrinter::new().precision(Some(3));

/// Prints a time like `2026-01-31T18:56:25.478Z`. Times out of the calendar's range print as the epoch.
pub(crate) fn iso(millis: Millis) -> String {
    let time = Timestamp::from_millisecond(millis).unwrap_or(Timestamp::UNIX_EPOCH);
    PRINTER.timestamp_to_string(&time)
}

/// Replaces `:` and `.` by `-`, for use in a file name.
pub(crate) fn for_file_name(iso: &str) -> String {
    iso.replace([':', '.'], "-")
}

/// Parses an ISO time into milliseconds since the epoch.
pub(crate) fn millis(iso: &str) -> Option<Millis> {
    iso.parse::<Timestamp>().ok().map(Timestamp::as_millisecond)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_printed_as_javascript_prints_them() {
        assert_eq!(iso(1_769_885_785_478), "2026-01-31T18:56:25.478Z");
        assert_eq!(iso(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(millis("2026-01-31T18:56:25.478Z"), Some(1_769_885_785_478));
        assert_eq!(
            for_file_name(&iso(1_769_885_785_478)),
            "2026-01-31T18-56-25-478Z"
        );
    }
}
