//! The read tool: a file's text, or an image for the model.

use std::io::{ErrorKind, Read as _};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use pinion_message::{Block, ToolSpec};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::image::{self, ImageKind};
use crate::line_range::{CollectedLines, LineCollector};
use crate::truncate::{self, MAX_BYTES, MAX_LINES, TruncatedBy, format_size};
use crate::{
    ErrorWords, ResultForm, Tool, ToolContext, ToolError, ToolOutput, ToolSettings, arguments,
    blocking, coerce, file_changes, node_error, path,
};

const READ_BUFFER_BYTES: usize = 64 * 1024;
/// Bytes; larger images are rejected without being read.
const MAX_IMAGE_BYTES: u64 = 100 * 1024 * 1024;

#[derive(Debug)]
pub(crate) struct Read {
    spec: ToolSpec,
    resize_images: bool,
    form: ResultForm,
}

impl Read {
    pub fn new(settings: &ToolSettings) -> Self {
        let spec = arguments::spec(
            "read",
            &format!(
                "Show what is in a file. Text comes without line numbers and stops after {MAX_LINES} lines \
                 or {} KiB; go on with offset where it stopped. Images (png, jpeg, gif, webp) are shown as \
                 images.",
                MAX_BYTES / 1024
            ),
            &[
                (
                    "path",
                    "string",
                    "Where the file is: relative to the working directory, or absolute",
                ),
                (
                    "offset",
                    "number",
                    "The first line to show; lines count from 1",
                ),
                ("limit", "number", "How many lines to show at most"),
            ],
            &["path"],
        );
        Self {
            spec,
            resize_images: settings.auto_resize_images,
            form: settings.form,
        }
    }
}

impl Tool for Read {
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
            context.check_cancelled()?;
            let name = arguments::text(&arguments, "path")?;
            let name = name.to_owned();
            let cwd = context.cwd.clone();
            let range = LineRange::new(&arguments);
            let (resize_images, form) = (self.resize_images, self.form);
            // Ends with the call, so that dropping the call stops the thread that reads for it.
            let cancel = context.cancel.child_token();
            let _ends_with_call = cancel.clone().drop_guard();
            let path = path::resolve(&name, &cwd);
            tokio::select! {
                biased;
                () = context.cancel.cancelled() => return Err(ToolError::aborted()),
                () = file_changes::changed_before(&path) => {}
            }
            blocking::run(&context.cancel, move || {
                let path = path::resolve_existing(&name, &cwd);
                let file = pinion_files::open(&path).map_err(|error| match error.kind() {
                    ErrorKind::IsADirectory => node_error::plain(&error, "read"),
                    _ => node_error::at(&error, "access", &path),
                })?;
                let job = ReadJob {
                    file,
                    name,
                    range,
                    resize_images,
                    form,
                    cancel,
                };
                job.run()
            })
            .await
        }
        .boxed()
    }
}

/// The requested lines.
struct LineRange {
    /// As the model wrote it, for messages.
    offset: Option<Value>,
    first: u64,
    length: Option<u64>,
}

impl LineRange {
    fn new(arguments: &Value) -> Self {
        let offset = arguments::count(arguments, "offset").unwrap_or(0) as u64;
        Self {
            offset: arguments.get("offset").cloned(),
            first: offset.saturating_sub(1),
            length: arguments::count(arguments, "limit").map(|limit| limit as u64),
        }
    }
}

/// The read tool's result for a file with the content `bytes`, from any source.
///
/// `arguments` are those of a call. `images` decides how an image is shown.
pub fn read_bytes(
    bytes: &[u8],
    arguments: &Value,
    images: ReadImages,
) -> Result<ToolOutput, ToolError> {
    let job = ReadJob {
        file: bytes,
        name: arguments::text(arguments, "path")?.to_owned(),
        range: LineRange::new(arguments),
        resize_images: images == ReadImages::Fitted,
        form: ResultForm::Text,
        cancel: CancellationToken::new(),
    };
    match images {
        ReadImages::AsText => job.text_only(),
        _ => job.run(),
    }
}

/// The handling of images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadImages {
    /// Scales images down to the size that models accept.
    Fitted,
    /// Shows images as they are.
    Unchanged,
    /// Treats images as text.
    AsText,
}

/// The inputs of the blocking part.
struct ReadJob<R> {
    file: R,
    name: String,
    range: LineRange,
    resize_images: bool,
    form: ResultForm,
    cancel: CancellationToken,
}

impl<R: std::io::Read> ReadJob<R> {
    fn run(mut self) -> Result<ToolOutput, ToolError> {
        let mut piece = vec![0; READ_BUFFER_BYTES];
        let mut length = self.fill(&mut piece)?;
        if let Some(kind) = image::sniff(&piece[..length.min(image::SNIFF_BYTES)]) {
            piece.truncate(length);
            return self.image(kind, piece);
        }
        let mut slice = LineCollector::new(self.range.first, self.range.length);
        while length > 0 {
            slice.push(&piece[..length]);
            length = self.fill(&mut piece)?;
        }
        self.text(slice.finish())
    }

    fn text_only(mut self) -> Result<ToolOutput, ToolError> {
        let mut slice = LineCollector::new(self.range.first, self.range.length);
        let mut piece = vec![0; READ_BUFFER_BYTES];
        loop {
            match self.fill(&mut piece)? {
                0 => return self.text(slice.finish()),
                length => slice.push(&piece[..length]),
            }
        }
    }

    /// Reads until `piece` is full or the file ends.
    fn fill(&mut self, piece: &mut [u8]) -> Result<usize, ToolError> {
        let mut length = 0;
        while length < piece.len() {
            if self.cancel.is_cancelled() {
                return Err(ToolError::aborted());
            }
            match self.file.read(&mut piece[length..]) {
                Ok(0) => break,
                Ok(count) => length += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(node_error::plain(&error, "read")),
            }
        }
        Ok(length)
    }

    fn text(&self, collected: CollectedLines) -> Result<ToolOutput, ToolError> {
        let LineRange { first, length, .. } = self.range;
        let total = collected.file_lines;
        if first >= total {
            let offset = match &self.range.offset {
                Some(Value::Number(number)) => coerce::number_text(number),
                _ => (first + 1).to_string(),
            };
            return Err(ToolError(format!(
                "Offset {offset} is beyond end of file ({total} lines total)"
            )));
        }
        let totals = if self.form.is_structured() && collected.ends_line {
            collected.totals.without_last_line()
        } else {
            collected.totals
        };
        let shown = truncate::head(&collected.text, totals, MAX_LINES as u64);
        let line = first + 1;
        if shown.first_line_exceeds_limit {
            let size = format_size(collected.first_line_bytes);
            let limit = format_size(MAX_BYTES as u64);
            let text = format!(
                "[Line {line} is {size}, exceeds {limit} limit. Use bash: sed -n '{line}p' {} | head -c {MAX_BYTES}]",
                self.name
            );
            let details = json!({"truncation": shown.to_value()});
            return Ok(self.output(text, Some(details)));
        }
        if shown.truncated {
            let last = first + shown.output_lines;
            let limit = match shown.truncated_by {
                Some(TruncatedBy::Bytes) => format!(" ({} limit)", format_size(MAX_BYTES as u64)),
                _ => String::new(),
            };
            let text = format!(
                "{}\n\n[Showing lines {line}-{last} of {total}{limit}. Use offset={} to continue.]",
                shown.content,
                last + 1
            );
            let details = json!({"truncation": shown.to_value()});
            return Ok(self.output(text, Some(details)));
        }
        let end = length.map_or(total, |length| first.saturating_add(length));
        if end < total {
            let text = format!(
                "{}\n\n[{} more lines in file. Use offset={} to continue.]",
                shown.content,
                total - end,
                end + 1
            );
            return Ok(self.output(text, None));
        }
        Ok(self.output(shown.content, None))
    }

    fn output(&self, text: String, details: Option<Value>) -> ToolOutput {
        ToolOutput {
            details,
            structured_content: self.form.is_structured().then(|| text.as_str().into()),
            ..ToolOutput::text(text)
        }
    }

    fn image(mut self, kind: ImageKind, mut bytes: Vec<u8>) -> Result<ToolOutput, ToolError> {
        let mut rest = (&mut self.file).take(MAX_IMAGE_BYTES - bytes.len() as u64 + 1);
        let read = rest.read_to_end(&mut bytes);
        read.map_err(|error| node_error::plain(&error, "read"))?;
        if bytes.len() as u64 > MAX_IMAGE_BYTES {
            return Err(ToolError(format!(
                "The image {} is larger than {}. Make a smaller copy with bash and read that.",
                self.name,
                format_size(MAX_IMAGE_BYTES)
            )));
        }
        let image = if self.resize_images {
            image::fit(bytes, kind).map_err(|error| {
                let name = &self.name;
                ToolError(format!(
                    "The image {name} {error}. Make a smaller copy with bash and read that."
                ))
            })?
        } else {
            image::FittedImage::unchanged(bytes, kind)
        };
        let mime = image.kind.mime();
        let text = match image.note() {
            Some(note) => format!("Read image file [{mime}]\n{note}"),
            None => format!("Read image file [{mime}]"),
        };
        let block = image.into_block();
        let structured_content = self.form.is_structured().then(|| {
            let mut structured = json!(block);
            structured["note"] = text.as_str().into();
            structured
        });
        Ok(ToolOutput {
            content: vec![Block::text(text), block],
            structured_content,
            ..ToolOutput::default()
        })
    }
}
