//! Text that people read: suggestions for misspelled words, texts without control characters, shortened texts, amounts,
//! durations, columns, hexadecimal digits, percent escapes, patterns with `*` and time zones by name.
//!
//! Every program that prints uses these functions, so that equal things look equal everywhere. Nothing here reads input,
//! prints, or knows a terminal: styles and layouts of the screen are in `tui`.

pub mod amount;
mod columns;
mod control;
pub mod duration;
pub mod hex;
mod nearest;
pub mod percent;
mod sanitise;
mod shorten;
mod wildcard;
pub mod zone;

pub use columns::columns;
pub use control::{harmless, harmless_line};
pub use nearest::nearest;
pub use sanitise::{Sanitiser, is_sanitised, one_line, sanitise};
pub use shorten::{shorten, shorten_bytes, start};
pub use wildcard::fits_wildcard;
