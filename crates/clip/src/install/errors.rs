//! Error messages about installations, in terms of the source that the user named.

use std::path::Path;

use crate::ClipError;
use crate::logs::{ClipLog, Origin};
use crate::package::{Package, Runtime};
use crate::process::{self, Programs};
use crate::source::Source;

/// Number of a clip's last log lines that are shown when its first run fails.
const SHOWN_LINES: usize = 5;
/// Number of log lines among which they are searched.
const SEARCHED_LINES: usize = 50;

/// Replaces the path of the staging directory in a message with the source, because the user does not know that
/// directory.
pub(super) fn with_source(error: ClipError, staged: &Path, source: &Source) -> ClipError {
    let source = match source {
        Source::Local { path, .. } => path.display().to_string(),
        other => other.to_string(),
    };
    let staged = staged.display().to_string();
    ClipError::new(error.code, error.message.replace(&staged, &source))
}

/// Describes why a clip failed when it was run once, with its last lines and the program it may need.
pub(super) fn trial_failed(
    error: ClipError,
    log: &ClipLog,
    package: &Package,
    programs: &Programs,
) -> ClipError {
    let mut message = error.message.into_owned();
    // The hub's own messages about the clip are already part of `message`.
    let lines = log.tail(SEARCHED_LINES);
    let lines = lines.iter().filter(|line| line.origin != Origin::System);
    let lines: Vec<&str> = lines.map(|line| &*line.message).collect();
    let last = &lines[lines.len().saturating_sub(SHOWN_LINES)..];
    // The message about a crash contains the last lines already.
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

/// Reports whether node must run TypeScript, which older versions of node cannot.
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
