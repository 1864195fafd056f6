//! The ls tool: lists a directory.

use std::cmp::Ordering;
use std::path::Path;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use pinion_message::ToolSpec;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use unicode_normalization::UnicodeNormalization;

use crate::listing::Listing;
use crate::{
    ErrorWords, ResultForm, Tool, ToolContext, ToolError, ToolOutput, arguments, blocking, path,
    walk,
};

const DEFAULT_LIMIT: usize = 500;
/// A directory with more entries is not listed: names are sorted, so all of them are read first.
const MAX_ENTRIES: usize = 1_000_000;

#[derive(Debug)]
pub(crate) struct Ls {
    spec: ToolSpec,
    form: ResultForm,
}

impl Ls {
    pub fn new(form: ResultForm) -> Self {
        let spec = arguments::spec(
            "ls",
            "List what is in a directory, hidden names included, sorted without regard to case. \
             Directories end in a slash.",
            &[
                (
                    "path",
                    "string",
                    "The directory; the working directory if left out",
                ),
                (
                    "limit",
                    "number",
                    "How many names to list at most; 500 if left out",
                ),
            ],
            &[],
        );
        Self { spec, form }
    }
}

impl Tool for Ls {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn error_words(&self) -> ErrorWords {
        self.form.error_words()
    }

    fn call<'a>(
        &'a self,
        arguments: Value,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        async move {
            context.check_cancelled()?;
            let path = path::resolve(
                arguments::optional_text(&arguments, "path").unwrap_or("."),
                &context.cwd,
            );
            let limit = arguments::count(&arguments, "limit").unwrap_or(DEFAULT_LIMIT);
            let cancel = context.cancel.child_token();
            let _ends_with_call = cancel.clone().drop_guard();
            blocking::run(&context.cancel, move || list(&path, limit, &cancel)).await
        }
        .boxed()
    }
}

fn list(path: &Path, limit: usize, cancel: &CancellationToken) -> Result<ToolOutput, ToolError> {
    let place = pinion_files::locate(path).map_err(|error| walk::not_found(&error, path))?;
    if !place.metadata.is_dir() {
        return Err(ToolError(format!("Not a directory: {}", path.display())));
    }
    let entries = std::fs::read_dir(path)
        .map_err(|error| ToolError(format!("Cannot read directory: {error}")))?;
    let mut names = Vec::new();
    for entry in entries.flatten() {
        if cancel.is_cancelled() {
            return Err(ToolError::aborted());
        }
        if names.len() == MAX_ENTRIES {
            return Err(ToolError(format!(
                "{} has more than {MAX_ENTRIES} entries. Use find, or bash to list a part of it.",
                path.display()
            )));
        }
        names.push(entry.file_name().to_string_lossy().into_owned());
    }
    names.sort_by(|left, right| compare(left, right));

    let mut lines = Vec::new();
    let mut more = false;
    for name in names {
        if cancel.is_cancelled() {
            return Err(ToolError::aborted());
        }
        if lines.len() >= limit {
            more = true;
            break;
        }
        // Links are followed; a broken link is not listed.
        match path.join(&name).metadata() {
            Ok(metadata) if metadata.is_dir() => lines.push(name + "/"),
            Ok(_) => lines.push(name),
            Err(_) => {}
        }
    }
    if lines.is_empty() {
        return Ok(ToolOutput::text("(empty directory)"));
    }
    let mut listing = Listing::new(&lines);
    if more {
        let notice = format!(
            "{limit} entries limit reached. Use limit={} for more",
            limit.saturating_mul(2)
        );
        listing.note(notice, "entryLimitReached", limit);
    }
    listing.cut();
    Ok(listing.into_output())
}

/// The order in which people look up names: punctuation, digits, letters; accents matter only
/// between names that are otherwise equal.
fn compare(left: &str, right: &str) -> Ordering {
    let (left, right) = (left.to_lowercase(), right.to_lowercase());
    let keys = |text: &str| text.nfd().filter_map(key).collect::<Vec<_>>();
    keys(&left)
        .cmp(&keys(&right))
        .then_with(|| left.cmp(&right))
}

fn key(c: char) -> Option<(u8, u32)> {
    const PUNCTUATION: &str = "_-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$";
    if unicode_normalization::char::is_combining_mark(c) {
        return None;
    }
    Some(match PUNCTUATION.find(c) {
        _ if c.is_whitespace() => (0, c as u32),
        Some(place) => (1, place as u32),
        None if c.is_numeric() => (2, c as u32),
        None => (3, c as u32),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_in_the_order_people_expect() {
        let mut names = vec![
            "Zebra", "éclair", "apple", "_private", ".git", "10", "2", "Makefile", "a-b",
            "eclipse", "ab", "a_b",
        ];
        names.sort_by(|left, right| compare(left, right));
        assert_eq!(
            names.join(" "),
            "_private .git 10 2 a_b a-b ab apple éclair eclipse Makefile Zebra"
        );
    }
}
