//! The find tool: files and directories by name.

use std::path::{Path, PathBuf};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use globset::{GlobBuilder, GlobMatcher};
use ignore::overrides::Override;
use pinion_message::ToolSpec;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::listing::Listing;
use crate::{
    ErrorWords, ResultForm, Tool, ToolContext, ToolError, ToolOutput, arguments, blocking, path,
    walk,
};

const DEFAULT_LIMIT: usize = 1000;
/// Bytes of paths that are collected: many times what is shown of them, regardless of the limit.
const MAX_STORED_BYTES: usize = 8 << 20;

#[derive(Debug)]
pub(crate) struct Find {
    spec: ToolSpec,
    form: ResultForm,
}

impl Find {
    pub fn new(form: ResultForm) -> Self {
        let spec = arguments::spec(
            "find",
            "Find files and directories by name. Hidden ones count, ignored ones (.gitignore) do not. \
             Paths come relative to the directory searched; directories end in a slash.",
            &[
                (
                    "pattern",
                    "string",
                    "A glob such as *.rs; one with a slash, such as src/**/*.rs, is matched against the whole path",
                ),
                (
                    "path",
                    "string",
                    "Where to search; the working directory if left out",
                ),
                (
                    "limit",
                    "number",
                    "How many to list at most; 1000 if left out",
                ),
            ],
            &["pattern"],
        );
        Self { spec, form }
    }
}

impl Tool for Find {
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
            let pattern = Pattern::new(arguments::text(&arguments, "pattern")?)?;
            let root = arguments::optional_text(&arguments, "path").unwrap_or(".");
            let root = path::resolve(root, &context.cwd);
            let limit = arguments::count(&arguments, "limit").unwrap_or(DEFAULT_LIMIT);
            let cancel = context.cancel.child_token();
            let _ends_with_call = cancel.clone().drop_guard();
            let work = move || find(&root, &pattern, limit, &cancel);
            blocking::run(&context.cancel, work).await
        }
        .boxed()
    }
}

/// A glob for names, or for paths if it contains a slash. Capital letters make it case-sensitive.
struct Pattern {
    matcher: GlobMatcher,
    whole_path: bool,
}

impl Pattern {
    fn new(glob: &str) -> Result<Self, ToolError> {
        let whole_path = glob.contains('/');
        let glob = match glob.strip_prefix('/') {
            Some(rest) => rest.to_owned(),
            None if whole_path && !glob.starts_with("**/") => format!("**/{glob}"),
            None => glob.to_owned(),
        };
        let matcher = GlobBuilder::new(&glob)
            .literal_separator(true)
            .case_insensitive(!glob.chars().any(char::is_uppercase))
            .build()
            .map_err(|error| ToolError(error.to_string()))?
            .compile_matcher();
        Ok(Self {
            matcher,
            whole_path,
        })
    }

    fn matches(&self, relative: &Path) -> bool {
        if self.whole_path {
            self.matcher.is_match(relative)
        } else {
            relative
                .file_name()
                .is_some_and(|name| self.matcher.is_match(name))
        }
    }
}

fn find(
    root: &Path,
    pattern: &Pattern,
    limit: usize,
    cancel: &CancellationToken,
) -> Result<ToolOutput, ToolError> {
    let place = pinion_files::locate(root).map_err(|error| walk::not_found(&error, root))?;
    if !place.metadata.is_dir() {
        return Err(ToolError(format!("Path not found: {}", root.display())));
    }
    let root = &*place.path;
    let mut lines = Vec::new();
    let mut stored = 0;
    // Unreadable directories are left out, as on the command line.
    for entry in walk::builder(root, Override::empty()).build().flatten() {
        if cancel.is_cancelled() {
            return Err(ToolError::aborted());
        }
        if lines.len() >= limit || stored >= MAX_STORED_BYTES {
            break;
        }
        let relative: PathBuf = match entry.path().strip_prefix(root) {
            Ok(relative) if entry.depth() > 0 => relative.to_owned(),
            _ => continue,
        };
        if pattern.matches(&relative) {
            let slash = if walk::is_dir(&entry) { "/" } else { "" };
            let line = format!("{}{slash}", relative.to_string_lossy());
            stored += line.len();
            lines.push(line);
        }
    }
    if lines.is_empty() {
        return Ok(ToolOutput::text("No files found matching pattern"));
    }
    let mut listing = Listing::new(&lines);
    if lines.len() >= limit {
        let notice = format!(
            "{limit} results limit reached. Use limit={} for more, or refine pattern",
            limit.saturating_mul(2)
        );
        listing.note(notice, "resultLimitReached", limit);
    }
    listing.cut();
    Ok(listing.into_output())
}
