//! Why a clip is not installed, in words that mean something to whoever wanted it.

use std::path::Path;

use crate::ClipError;
use crate::logs::{ClipLog, Origin};
use crate::package::{Package, Runtime};
use crate::process::{self, Programs};
use crate::source::Source;

/// So many lines of a clip that could not be tried out are told.
const SHOWN_LINES: usize = 5;
/// They are looked for among so many.
const SEARCHED_LINES: usize = 50;

/// The same about the source: where a package lies while it is looked at is nobody's business.
pub(super) fn with_source(error: ClipError, staged: &Path, source: &Source) -> ClipError {
    let source = match source {
        Source::Local { path, .. } => path.display().to_string(),
        other => other.to_string(),
    };
    let staged = staged.display().to_string();
    ClipError::new(error.code, error.message.replace(&staged, &source))
}

/// Why a clip could not be tried out, with its last words and what it may need.
pub(super) fn trial_failed(
    error: ClipError,
    log: &ClipLog,
    package: &Package,
    programs: &Programs,
) -> ClipError {
    let mut message = error.message.into_owned();
    // What we said about it is in the message already.
    let said = log.tail(SEARCHED_LINES);
    let said = said.iter().filter(|line| line.origin != Origin::System);
    let said: Vec<&str> = said.map(|line| &*line.message).collect();
    let last = &said[said.len().saturating_sub(SHOWN_LINES)..];
    // A crash is reported with its last lines.
    if last.last().is_some_and(|line| !message.contains(line)) {
        message.push_str("; its last lines:");
        for line in last {
            message.extend(["\n", line]);
        }
    }
    if is_typescript_on_node(package, programs) {
        message.push_str("\nIt is written in TypeScript, which needs bun or node 22.18.");
    }
    ClipError::new(error.code, message)
}

/// Whether node has to run what not every node understands.
fn is_typescript_on_node(package: &Package, programs: &Programs) -> bool {
    let by_node = match package.runtime {
        Runtime::Bun => process::bun(programs).is_none(),
        Runtime::Node => true,
        Runtime::Python | Runtime::Exec => false,
    };
    let entry = package.entry().unwrap_or_default();
    let ending = entry.extension().and_then(|ending| ending.to_str());
    by_node && matches!(ending, Some("ts" | "tsx" | "mts" | "cts"))
}
