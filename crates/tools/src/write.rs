//! The write tool: replaces a file's whole content.

use std::path::Path;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use pinion_message::ToolSpec;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::{
    ErrorWords, ResultForm, Tool, ToolContext, ToolError, ToolOutput, arguments, file_changes,
    node_error, path,
};

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
            file_changes::change(&path, &context.cancel, move || {
                make_parent(&file, &cancel)?;
                file_changes::replace(&file, text.as_bytes(), &cancel)
            })
            .await?;
            // Counted in UTF-16 units, as clients of this text expect.
            let length = content.encode_utf16().count();
            Ok(ToolOutput::text(if self.form.is_structured() {
                format!("Successfully wrote to {name}")
            } else {
                format!("Successfully wrote {length} bytes to {name}")
            }))
        }
        .boxed()
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
