//! The causes of an error, from the outermost to the innermost.

use std::error::Error;

/// Iterates over `error` and its causes.
pub fn causes<'a>(
    error: &'a (dyn Error + 'static),
) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

/// Returns the text of the innermost error, which is the most specific one.
pub fn root_cause(error: &(dyn Error + 'static)) -> String {
    causes(error)
        .last()
        .map_or_else(String::new, ToString::to_string)
}
