//! Go's layouts for times: the second of January 2006 at 15:04:05 shows the form.

mod format;
mod parse;

pub use format::format;
pub use parse::parse;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    MonthName,
    MonthShort,
    Month {
        zero: bool,
    },
    WeekdayName,
    WeekdayShort,
    Day {
        fill: Fill,
    },
    YearDay {
        fill: Fill,
    },
    Year,
    YearShort,
    Hour24,
    Hour12 {
        zero: bool,
    },
    Minute {
        zero: bool,
    },
    Second {
        zero: bool,
    },
    HalfDay {
        upper: bool,
    },
    ZoneName,
    Offset {
        utc_as_z: bool,
        colon: bool,
        parts: u8,
    },
    Fraction {
        digits: usize,
        keep: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fill {
    None,
    Zero,
    Blank,
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const WEEKDAYS: [&str; 7] = [
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
];

/// The fixed forms; a longer one precedes its own prefixes.
const FORMS: &[(&str, Part)] = &[
    ("January", Part::MonthName),
    ("Jan", Part::MonthShort),
    ("Monday", Part::WeekdayName),
    ("Mon", Part::WeekdayShort),
    ("MST", Part::ZoneName),
    ("002", Part::YearDay { fill: Fill::Zero }),
    ("01", Part::Month { zero: true }),
    ("02", Part::Day { fill: Fill::Zero }),
    ("03", Part::Hour12 { zero: true }),
    ("04", Part::Minute { zero: true }),
    ("05", Part::Second { zero: true }),
    ("06", Part::YearShort),
    ("15", Part::Hour24),
    ("1", Part::Month { zero: false }),
    ("2006", Part::Year),
    ("2", Part::Day { fill: Fill::None }),
    ("__2", Part::YearDay { fill: Fill::Blank }),
    ("_2", Part::Day { fill: Fill::Blank }),
    ("3", Part::Hour12 { zero: false }),
    ("4", Part::Minute { zero: false }),
    ("5", Part::Second { zero: false }),
    ("PM", Part::HalfDay { upper: true }),
    ("pm", Part::HalfDay { upper: false }),
    (
        "-07:00:00",
        Part::Offset {
            utc_as_z: false,
            colon: true,
            parts: 3,
        },
    ),
    (
        "-070000",
        Part::Offset {
            utc_as_z: false,
            colon: false,
            parts: 3,
        },
    ),
    (
        "-07:00",
        Part::Offset {
            utc_as_z: false,
            colon: true,
            parts: 2,
        },
    ),
    (
        "-0700",
        Part::Offset {
            utc_as_z: false,
            colon: false,
            parts: 2,
        },
    ),
    (
        "-07",
        Part::Offset {
            utc_as_z: false,
            colon: false,
            parts: 1,
        },
    ),
    (
        "Z07:00:00",
        Part::Offset {
            utc_as_z: true,
            colon: true,
            parts: 3,
        },
    ),
    (
        "Z070000",
        Part::Offset {
            utc_as_z: true,
            colon: false,
            parts: 3,
        },
    ),
    (
        "Z07:00",
        Part::Offset {
            utc_as_z: true,
            colon: true,
            parts: 2,
        },
    ),
    (
        "Z0700",
        Part::Offset {
            utc_as_z: true,
            colon: false,
            parts: 2,
        },
    ),
    (
        "Z07",
        Part::Offset {
            utc_as_z: true,
            colon: false,
            parts: 1,
        },
    ),
];

/// Splits off the first part of a layout: returns the text before it, the part, its own text and
/// the rest.
fn split(layout: &str) -> Option<(&str, Part, &str, &str)> {
    for (at, _) in layout.char_indices() {
        let (before, rest) = layout.split_at(at);
        if let Some((part, length)) = fraction(rest) {
            return Some((before, part, &rest[..length], &rest[length..]));
        }
        for (form, part) in FORMS {
            let Some(after) = rest.strip_prefix(form) else {
                continue;
            };
            // `_2006` is an underscore and a year; `Janet` is not a month.
            if *form == "_2" && rest.starts_with("_2006") {
                continue;
            }
            if *form == "Jan" && after.starts_with(|c: char| c.is_ascii_lowercase()) {
                continue;
            }
            return Some((before, *part, form, after));
        }
    }
    None
}

/// Parses `.000` or `.999`, the fraction of a second.
fn fraction(rest: &str) -> Option<(Part, usize)> {
    let mut bytes = rest.bytes();
    if !matches!(bytes.next(), Some(b'.' | b',')) {
        return None;
    }
    let digit = bytes.next().filter(|b| matches!(b, b'0' | b'9'))?;
    let digits = rest.bytes().skip(1).take_while(|b| *b == digit).count();
    if rest
        .as_bytes()
        .get(1 + digits)
        .is_some_and(u8::is_ascii_digit)
    {
        return None;
    }
    let keep = digit == b'0';
    Some((Part::Fraction { digits, keep }, 1 + digits))
}
