//! Messages on standard error.

use std::fmt::Arguments;
use std::io::Write;
use std::sync::{Arc, OnceLock};

use pinion_acp::TrafficLog;

/// Prints a line to standard error like the macro of the same name in `std`, which it replaces in this crate: that one
/// panics if the reader of standard error is gone.
macro_rules! eprintln {
    () => { eprint!("\n") };
    ($($argument:tt)*) => { eprint!("{}\n", format_args!($($argument)*)) };
}

/// Prints to standard error without the end of a line. See [`eprintln`].
macro_rules! eprint {
    ($($argument:tt)*) => {{
        $crate::stderr::print(format_args!($($argument)*));
    }};
}

/// The place of messages instead of standard error: a log, or none.
static REDIRECTED: OnceLock<Option<Arc<TrafficLog>>> = OnceLock::new();

/// Sends further messages to `log` instead of standard error, which an editor shows as errors.
pub(crate) fn redirect(log: Option<Arc<TrafficLog>>) {
    // A second redirection does not occur.
    let _ = REDIRECTED.set(log);
}

/// Prints a message.
pub(crate) fn print(message: Arguments<'_>) {
    match REDIRECTED.get() {
        Some(Some(log)) => log.warn(&message.to_string()),
        Some(None) => {}
        None => {
            // There is no other place to report a failure.
            let _ = std::io::stderr().write_fmt(message);
        }
    }
}
