//! The write tool: replaces a file's whole content.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use pinion_message::ToolSpec;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::{
    ErrorWords, ResultForm, TextChange, Tool, ToolContext, ToolError, ToolOutput, arguments,
    blocking, file_changes, node_error, path,
};

/// The largest existing file whose text is read to show the change, in bytes.
const MAX_SHOWN_BYTES: u64 = 4 << 20;

/// Creates or overwrites a file, with the directories above it.
#[derive(Debug)]
pub(crate) struct Write {
    spec: ToolSpec,
    form: ResultForm,
}

impl Write {
    pub fn new(form: ResultForm) -> Self {
        let spec = arguments::spec(
            "write",
            "Put text into a file. A missing file is created together with its directories; \
             an existing file is replaced as a whole. To change part of a file, use edit.",
            &[
                (
                    "path",
                    "string",
                    "Where the file is: relative to the working directory, or absolute",
                ),
                ("content", "string", "Everything the file shall contain"),
            ],
            &["path", "content"],
        );
        Self { spec, form }
    }
}

impl Tool for Write {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn error_words(&self) -> ErrorWords {
        self.form.error_words()
    }

    fn constrained_sampling(&self) -> Option<Value> {
        self.form.constrained_sampling()
    }

    fn preview<'a>(
        &'a self,
        arguments: &'a Value,
        cwd: &'a Path,
    ) -> BoxFuture<'a, Option<TextChange>> {
        async move {
            let arguments = self.validate(arguments).ok()?;
            let path = path::resolve(arguments::text(&arguments, "path").ok()?, cwd);
            let content = arguments::text(&arguments, "content").ok()?.to_owned();
            let cancel = CancellationToken::new();
            let preview = blocking::run_blocking(&cancel, move || {
                let before = text_before(&path)?;
                Some(TextChange::between(path, before, content))
            });
            preview.await.ok().flatten()
        }
        .boxed()
    }

    fn call<'a>(
        &'a self,
        arguments: Value,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        async move {
            let name = arguments::text(&arguments, "path")?;
            let content = arguments::text(&arguments, "content")?;
            let path = path::resolve(name, &context.cwd);
            let (file, text) = (path.clone(), content.to_owned());
            // A child, so that dropping the call stops the thread before it changes anything.
            let cancel = context.cancel.child_token();
            let _ends_with_call = cancel.clone().drop_guard();
            let records_change = context.records_change;
            let change = file_changes::change(&path, &context.cancel, move || {
                make_parent(&file, &cancel)?;
                let before = if records_change {
                    text_before(&file)
                } else {
                    None
                };
                file_changes::replace(&file, text.as_bytes(), &cancel)?;
                Ok(before.map(|before| TextChange::between(file, before, text)))
            })
            .await?;
            // Counted in UTF-16 units, as clients of this text expect.
            let length = content.encode_utf16().count();
            let mut output = ToolOutput::text(if self.form.is_structured() {
                format!("Successfully wrote to {name}")
            } else {
                format!("Successfully wrote {length} bytes to {name}")
            });
            output.change = change.map(Arc::new);
            Ok(output)
        }
        .boxed()
    }
}

/// Returns the text of the file at `path`, or `Some(None)` if there is none. `None` stands for a file whose text cannot be
/// shown.
fn text_before(path: &Path) -> Option<Option<String>> {
    match pinion_files::read(path, MAX_SHOWN_BYTES) {
        Ok(bytes) => String::from_utf8(bytes).ok().map(Some),
        Err(error) if error.kind() == ErrorKind::NotFound => Some(None),
        Err(_) => None,
    }
}

fn make_parent(path: &Path, cancel: &CancellationToken) -> Result<(), ToolError> {
    pinion_files::reject_process_files(path)
        .map_err(|error| node_error::at(&error, "open", path))?;
    if cancel.is_cancelled() {
        return Err(ToolError::aborted());
    }
    match path.parent() {
        Some(parent) if !parent.is_dir() => {
            std::fs::create_dir_all(parent).map_err(|error| node_error::at(&error, "mkdir", parent))
        }
        _ => Ok(()),
    }
}
