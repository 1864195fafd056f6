//! The edit tool: exact replacements in one file.
//!
//! Its schema has `oldText` and `newText`; a list of `edits` (also as JSON text) is accepted as
//! well. `replacement.rs` finds and replaces the texts.

use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use pinion_message::{Block, ToolSpec};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::replacement::{self, Edit, EditRequest, FileChange};
use crate::{
    ResultForm, TextChange, Tool, ToolContext, ToolError, ToolOutput, arguments, blocking, diff,
    encoding, file_changes, node_error, path,
};

/// The largest file that can be edited, in bytes. An edit takes several times that much memory.
const MAX_FILE_BYTES: u64 = 32 << 20;
/// The largest file whose change is previewed, in bytes.
const MAX_PREVIEW_BYTES: u64 = 4 << 20;

#[derive(Debug)]
pub(crate) struct EditFile {
    spec: ToolSpec,
    list_spec: ToolSpec,
    form: ResultForm,
}

impl EditFile {
    pub fn new(form: ResultForm) -> Self {
        let description = "Replace a piece of text in a file. The old text has to occur exactly once and \
             has to be given as it stands in the file, blanks and line breaks included.";
        let path = (
            "path",
            "string",
            "Where the file is: relative to the working directory, or absolute",
        );
        let spec = arguments::spec(
            "edit",
            description,
            &[
                path,
                (
                    "oldText",
                    "string",
                    "The text to replace, exactly as it stands in the file",
                ),
                ("newText", "string", "The text that takes its place"),
            ],
            &["path", "oldText", "newText"],
        );
        let mut list_spec = arguments::spec("edit", description, &[path], &["path", "edits"]);
        let text = |description: &str| json!({"type": "string", "description": description});
        list_spec.parameters["properties"]["edits"] = json!({
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "oldText": text("The text to replace, exactly as it stands in the file"),
                    "newText": text("The text that takes its place"),
                },
                "required": ["oldText", "newText"],
            },
            "description": "The replacements; each is looked for in the file as it was before the call",
        });
        if !form.is_structured() {
            list_spec.parameters["properties"]["edits"]["items"]["additionalProperties"] =
                false.into();
        }
        Self {
            spec,
            list_spec,
            form,
        }
    }
}

impl Tool for EditFile {
    fn spec(&self) -> &ToolSpec {
        if self.form.is_structured() {
            &self.list_spec
        } else {
            &self.spec
        }
    }

    fn validate(&self, arguments: &Value) -> Result<Value, String> {
        let words = self.form.error_words();
        let listed = match self.form {
            ResultForm::Text => with_edit_list(arguments),
            ResultForm::Structured => with_edit_list(arguments).or_else(|| one_edit(arguments)),
        };
        match listed {
            Some(arguments) => crate::validate_with(&self.list_spec, &arguments, words),
            None => crate::validate_with(self.spec(), arguments, words),
        }
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
            let arguments = with_edit_list(&arguments).unwrap_or(arguments);
            let name = arguments::text(&arguments, "path").ok()?;
            let request = request(&arguments, name).ok()?;
            let path = path::resolve(name, cwd);
            let cancel = CancellationToken::new();
            let preview = blocking::run_blocking(&cancel, move || {
                let bytes = pinion_files::read(&path, MAX_PREVIEW_BYTES).ok()?;
                let change = replacement::apply(&encoding::decode(&bytes)?, &request).ok()?;
                Some(text_change(path, change))
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
            let arguments = with_edit_list(&arguments).unwrap_or(arguments);
            let name = arguments::text(&arguments, "path")?;
            let request = request(&arguments, name)?;
            let form = self.form;
            let records_change = context.records_change;
            let path = path::resolve(name, &context.cwd);
            let file = path.clone();
            // A child, so that dropping the call stops the thread before it changes anything.
            let cancel = context.cancel.child_token();
            let _ends_with_call = cancel.clone().drop_guard();
            file_changes::change(&path, &context.cancel, move || {
                apply(&file, &request, form, records_change, &cancel)
            })
            .await
        }
        .boxed()
    }
}

/// The arguments with `edits` as a list of all replacements of the call; `None` if there is no such
/// list.
fn with_edit_list(arguments: &Value) -> Option<Value> {
    let edits = match arguments.get("edits")? {
        Value::String(text) => serde_json::from_str(text).ok()?,
        edits => edits.clone(),
    };
    let mut arguments = arguments.as_object()?.clone();
    let old = arguments.shift_remove("oldText");
    let new = arguments.shift_remove("newText");
    let edits = match (edits, old, new) {
        (Value::Array(mut edits), Some(old), Some(new)) => {
            edits.push(json!({"oldText": old, "newText": new}));
            Value::Array(edits)
        }
        (edits, ..) => edits,
    };
    arguments.insert("edits".into(), edits);
    Some(Value::Object(arguments))
}

/// The arguments with `oldText` and `newText` as a list of one replacement; `None` if either is missing.
fn one_edit(arguments: &Value) -> Option<Value> {
    let mut arguments = arguments.as_object()?.clone();
    let old = arguments.shift_remove("oldText")?;
    let new = arguments.shift_remove("newText")?;
    arguments.insert("edits".into(), json!([{"oldText": old, "newText": new}]));
    Some(Value::Object(arguments))
}

fn request(arguments: &Value, name: &str) -> Result<EditRequest, ToolError> {
    let edit = |value: &Value| -> Result<Edit, ToolError> {
        Ok(Edit::new(
            arguments::text(value, "oldText")?,
            arguments::text(value, "newText")?,
        ))
    };
    match arguments.get("edits").and_then(Value::as_array) {
        Some(list) if list.is_empty() => Err(ToolError(
            "Edit tool input is invalid. edits must contain at least one replacement.".into(),
        )),
        Some(list) => EditRequest::list(name, list.iter().map(edit).collect::<Result<_, _>>()?),
        None => EditRequest::single(name, edit(arguments)?),
    }
}

/// Applies the edit tool to the content of a file from any source. Returns the new content and the
/// result of the call. `arguments` are those of a call.
pub fn edit_bytes(bytes: &[u8], arguments: &Value) -> Result<(Vec<u8>, ToolOutput), ToolError> {
    let arguments = with_edit_list(arguments).unwrap_or_else(|| arguments.clone());
    let request = request(&arguments, arguments::text(&arguments, "path")?)?;
    let change = replacement::apply(&text_of(bytes, &request.path)?, &request)?;
    let output = output_of(&change, &request, ResultForm::Text);
    Ok((encoding::encode(&change.file), output))
}

fn apply(
    path: &Path,
    request: &EditRequest,
    form: ResultForm,
    records_change: bool,
    cancel: &CancellationToken,
) -> Result<ToolOutput, ToolError> {
    let raw = read(path, &request.path, form)?;
    let change = replacement::apply(&raw, request)?;
    drop(raw);
    let mut output = output_of(&change, request, form);
    file_changes::replace(path, &encoding::encode(&change.file), cancel)?;
    if records_change {
        output.change = Some(Arc::new(text_change(path.to_owned(), change)));
    }
    Ok(output)
}

fn text_change(path: PathBuf, change: FileChange) -> TextChange {
    let before = encoding::shown(change.original);
    TextChange::between(path, Some(before), encoding::shown(change.kept))
}

fn output_of(change: &FileChange, request: &EditRequest, form: ResultForm) -> ToolOutput {
    let (before, after) = if form.is_structured() {
        (&change.original, &change.kept)
    } else {
        (&change.before, &change.after)
    };
    let diff = diff::lines(before, after);
    let mut details = json!({"diff": encoding::shown(diff.text)});
    if form.is_structured() {
        let patch = diff::patch(&request.path, before, after);
        details["patch"] = encoding::shown(patch).into();
    }
    if let Some(line) = diff.first_changed_line {
        details["firstChangedLine"] = line.into();
    }
    ToolOutput {
        content: vec![Block::text(request.success())],
        details: Some(details),
        ..ToolOutput::default()
    }
}

fn read(path: &Path, name: &str, form: ResultForm) -> Result<String, ToolError> {
    // Opened for writing too, so that a file that cannot be written fails before anything changes.
    let opened = pinion_files::open_with(OpenOptions::new().read(true).append(true), path);
    let read = opened.and_then(|_| pinion_files::read(path, MAX_FILE_BYTES));
    let bytes = read.map_err(|error| match error.kind() {
        ErrorKind::NotFound if !form.is_structured() => {
            ToolError(format!("File not found: {name}"))
        }
        ErrorKind::IsADirectory => node_error::plain(&error, "read"),
        ErrorKind::FileTooLarge => {
            ToolError(format!("{name} {error} for edits. Use bash to change it."))
        }
        _ if error.raw_os_error().is_none() => ToolError(format!("{name} {error}")),
        _ => {
            let code = node_error::code(&error);
            ToolError(format!("Could not edit file: {name}. Error code: {code}."))
        }
    })?;
    text_of(&bytes, name)
}

fn text_of(bytes: &[u8], name: &str) -> Result<String, ToolError> {
    encoding::decode(bytes).ok_or_else(|| {
        ToolError(format!(
            "{name} is not a text file that can be edited. Use bash to change it."
        ))
    })
}
