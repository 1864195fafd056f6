//! The grep tool: lines that match a pattern.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use pinion_message::ToolSpec;
use serde_json::Value;

use crate::listing::Listing;
use crate::search::{Hit, Search};
use crate::{
    ErrorWords, ResultForm, Tool, ToolContext, ToolError, ToolOutput, arguments, blocking, path,
};

const DEFAULT_LIMIT: usize = 100;
/// The longest line that is shown whole, in UTF-16 units.
const MAX_LINE_UNITS: usize = 500;

#[derive(Debug)]
pub(crate) struct Grep {
    spec: ToolSpec,
    form: ResultForm,
}

impl Grep {
    pub fn new(form: ResultForm) -> Self {
        let spec = arguments::spec(
            "grep",
            "Search the contents of files. Hidden files count, ignored ones (.gitignore) and binary ones do \
             not. Each hit comes as path, line number and line; long lines are cut.",
            &[
                (
                    "pattern",
                    "string",
                    "A regular expression, or plain text with literal",
                ),
                (
                    "path",
                    "string",
                    "A directory or a file; the working directory if left out",
                ),
                (
                    "glob",
                    "string",
                    "Search only files that match this glob, such as *.ts",
                ),
                (
                    "ignoreCase",
                    "boolean",
                    "Make no difference between upper and lower case",
                ),
                ("literal", "boolean", "Take the pattern as plain text"),
                (
                    "context",
                    "number",
                    "How many lines to show before and after each hit",
                ),
                (
                    "limit",
                    "number",
                    "How many hits to show at most; 100 if left out",
                ),
            ],
            &["pattern"],
        );
        Self { spec, form }
    }
}

impl Tool for Grep {
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
            let matcher = matcher(&arguments)?;
            let root = arguments::optional_text(&arguments, "path").unwrap_or(".");
            let cancel = context.cancel.child_token();
            let _ends_with_call = cancel.clone().drop_guard();
            let search = Search {
                root: path::resolve(root, &context.cwd),
                matcher,
                glob: arguments::optional_text(&arguments, "glob").map(str::to_owned),
                context: arguments::count(&arguments, "context").unwrap_or(0),
                limit: arguments::count(&arguments, "limit")
                    .unwrap_or(DEFAULT_LIMIT)
                    .max(1),
                cancel,
            };
            blocking::run(&context.cancel, move || {
                let hits = search.run()?;
                Ok(output(&hits, search.limit))
            })
            .await
        }
        .boxed()
    }
}

fn matcher(arguments: &Value) -> Result<RegexMatcher, ToolError> {
    RegexMatcherBuilder::new()
        .case_insensitive(arguments::flag(arguments, "ignoreCase"))
        .fixed_strings(arguments::flag(arguments, "literal"))
        .line_terminator(Some(b'\n'))
        .build(arguments::text(arguments, "pattern")?)
        .map_err(|error| ToolError(error.to_string()))
}

fn output(hits: &[Hit], limit: usize) -> ToolOutput {
    if hits.is_empty() {
        return ToolOutput::text("No matches found");
    }
    let mut lines = Vec::new();
    let mut shortened = false;
    for hit in hits {
        for (number, text) in &hit.lines {
            let text = match cut(text) {
                Some(start) => {
                    shortened = true;
                    format!("{start}... [truncated]")
                }
                None => text.clone(),
            };
            let mark = if *number == hit.line { ':' } else { '-' };
            lines.push(format!("{}{mark}{number}{mark} {text}", hit.path));
        }
    }
    let mut listing = Listing::new(&lines);
    if hits.len() >= limit {
        let notice = format!(
            "{limit} matches limit reached. Use limit={} for more, or refine pattern",
            limit.saturating_mul(2)
        );
        listing.note(notice, "matchLimitReached", limit);
    }
    listing.cut();
    if shortened {
        let notice = format!(
            "Some lines truncated to {MAX_LINE_UNITS} chars. Use read tool to see full lines"
        );
        listing.note(notice, "linesTruncated", true);
    }
    listing.into_output()
}

/// The start of a line that is too long to be shown whole.
fn cut(text: &str) -> Option<&str> {
    if text.len() <= MAX_LINE_UNITS {
        return None;
    }
    let mut units = 0;
    let end = text.char_indices().find_map(|(at, c)| {
        units += c.len_utf16();
        (units > MAX_LINE_UNITS).then_some(at)
    })?;
    Some(&text[..end])
}
