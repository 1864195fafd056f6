//! Decodes the lines that clips print.

use std::cell::Cell;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::long::Shortened;
use super::{CrossCall, Failure, Junk, LineDialect, Message, Request};
use crate::data::{DataOperation, DataRequest};
use crate::logs::Level;
use crate::output::EMPTY_OBJECT;
use crate::{ClipError, Code};

const NULL: Bytes = Bytes::from_static(b"null");

/// The keys of all messages, with their values unparsed.
#[derive(Deserialize)]
struct RawMessage<'a> {
    #[serde(rename = "type", borrow, default, deserialize_with = "present")]
    kind: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    output: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    chunk: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    data: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    error: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    manifest: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    clip: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    alias: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    command: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    input: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    clip_token: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    operation: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    path: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    content: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    mime: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    level: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    message: Option<&'a RawValue>,
}

/// Reads a key with the value `null` as present.
fn present<'de, D>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error>
where
    D: serde::Deserializer<'de>,
{
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// Extracts a value from a line as it was written.
type Part<'a> = &'a dyn Fn(&RawValue) -> Bytes;

/// Decodes one line, without its LF. Long values are not copied out of it.
pub fn decode(whole: &Bytes) -> Result<(Message, LineDialect), Junk> {
    match Shortened::of(whole).and_then(|short| decode_short(whole, &short)) {
        Some(understood) => Ok(understood),
        None => understand(whole, &|raw| part(whole, raw.get().as_bytes())),
    }
}

/// Decodes a line without its long string. `None` unless the line is an output and the string was restored in it.
fn decode_short(whole: &Bytes, short: &Shortened) -> Option<(Message, LineDialect)> {
    let is_restored = Cell::new(true);
    let restored = |raw: &RawValue| match short.restore(whole, raw.get().as_bytes()) {
        Some(bytes) => part(whole, bytes),
        None => {
            is_restored.set(false);
            NULL
        }
    };
    let understood = understand(&short.line, &restored).ok()?;
    let passes_on = matches!(understood.0, Message::Chunk(..) | Message::Result(..));
    (passes_on && is_restored.get()).then_some(understood)
}

fn understand(line: &[u8], part: Part<'_>) -> Result<(Message, LineDialect), Junk> {
    // Serde would accept an array as the fields in their order.
    if !line.trim_ascii_start().starts_with(b"{") {
        return Err(Junk::NotJson);
    }
    let line: RawMessage<'_> = serde_json::from_slice(line).map_err(|_| Junk::NotJson)?;
    let kind = text(line.kind).unwrap_or_default();
    let message = match kind.as_str() {
        "register" => {
            let manifest = line.manifest.filter(|manifest| manifest.get() != "null");
            let manifest = manifest.map(RawValue::to_owned);
            return Ok((Message::Register(manifest), LineDialect::Registration));
        }
        "log" => (
            Message::Log(Level::parse(&text(line.level).unwrap_or_default()), {
                let message = text(line.message).unwrap_or_default();
                match line.data.filter(|data| data.get() != "null") {
                    Some(data) => format!("{message} {}", data.get()),
                    None => message,
                }
            }),
            LineDialect::Direct,
        ),
        "result" => (line.result(part)?, LineDialect::Register),
        "response" => (line.result(part)?, LineDialect::Direct),
        "error" => (line.failed()?, LineDialect::Register),
        "chunk" => (line.chunk(part)?, LineDialect::Register),
        "stream" => (line.chunk(part)?, LineDialect::Direct),
        "done" => (line.done()?, LineDialect::Register),
        "stream_end" => (line.done()?, LineDialect::Direct),
        "invoke" => (line.call(part)?, LineDialect::Register),
        "invoke_clip" => (line.call(part)?, LineDialect::Direct),
        "list_clips" => (Message::ListClips(line.request()?), LineDialect::Register),
        "data" => (
            Message::Data(line.request()?, line.data_request()),
            LineDialect::Register,
        ),
        _ => return Err(Junk::UnknownType(kind)),
    };
    Ok(message)
}

impl RawMessage<'_> {
    /// Returns the id. The hub sends ids as strings; clips that send them back as numbers are understood too.
    fn id(&self) -> Result<Box<str>, Junk> {
        let raw = self.id.ok_or(Junk::NoId)?;
        match text(Some(raw)) {
            Some(id) if !id.is_empty() => Ok(id.into()),
            None if is_number(raw) => Ok(raw.get().into()),
            _ => Err(Junk::NoId),
        }
    }

    fn request(&self) -> Result<Request, Junk> {
        self.id()?;
        Ok(Request(self.id.ok_or(Junk::NoId)?.to_owned()))
    }

    fn result(&self, part: Part<'_>) -> Result<Message, Junk> {
        if self.error.is_some_and(|error| error.get() != "null") {
            return self.failed();
        }
        Ok(Message::Result(self.id()?, self.output.map(part)))
    }

    fn chunk(&self, part: Part<'_>) -> Result<Message, Junk> {
        let output = self.chunk.or(self.output).or(self.data);
        Ok(Message::Chunk(self.id()?, output.map_or(NULL, part)))
    }

    fn done(&self) -> Result<Message, Junk> {
        if self.error.is_some_and(|error| error.get() != "null") {
            return self.failed();
        }
        Ok(Message::Done(self.id()?))
    }

    fn failed(&self) -> Result<Message, Junk> {
        Ok(Message::Failed(self.id()?, failure(self.error)))
    }

    fn call(&self, part: Part<'_>) -> Result<Message, Junk> {
        let word = |raw: Option<&RawValue>| text(raw).unwrap_or_default().trim().to_owned();
        let input = self.input.filter(|input| input.get() != "null");
        let call = CrossCall {
            clip: word(self.clip.or(self.alias)),
            command: word(self.command),
            input: input.map_or(EMPTY_OBJECT, part),
            clip_token: text(self.clip_token).filter(|token| !token.is_empty()),
        };
        Ok(Message::Call(self.request()?, call))
    }

    fn data_request(&self) -> Result<DataRequest, ClipError> {
        let operation = text(self.operation).unwrap_or_default();
        let operation = match operation.trim() {
            "read" => DataOperation::Read,
            "write" => {
                let content = text(self.content).unwrap_or_default();
                DataOperation::Write {
                    content: crate::data::from_base64(&content)?.into(),
                    mime: text(self.mime).unwrap_or_default(),
                }
            }
            "list" => DataOperation::List,
            "delete" => DataOperation::Delete,
            "stat" => DataOperation::Stat,
            other => {
                return Err(ClipError::new(
                    Code::InvalidArgument,
                    format!(
                        "unknown data operation \"{other}\"; use write, read, list, delete or stat"
                    ),
                ));
            }
        };
        let clip = text(self.clip).filter(|clip| !clip.trim().is_empty());
        Ok(DataRequest {
            operation,
            path: text(self.path).unwrap_or_default(),
            clip,
        })
    }
}

fn failure(error: Option<&RawValue>) -> Failure {
    #[derive(Deserialize)]
    struct Structured {
        code: Option<String>,
        message: Option<String>,
    }
    let Some(raw) = error else {
        return Failure {
            code: None,
            message: "the clip failed without giving a reason".into(),
        };
    };
    if let Some(message) = text(Some(raw)) {
        return Failure {
            code: None,
            message,
        };
    }
    match serde_json::from_str::<Structured>(raw.get()) {
        Ok(error) => Failure {
            code: Some(Code::parse(&error.code.unwrap_or_default())),
            message: error.message.unwrap_or_else(|| raw.get().to_owned()),
        },
        Err(_) => Failure {
            code: None,
            message: raw.get().to_owned(),
        },
    }
}

/// Returns the text of a JSON string; `None` for anything else.
fn text(raw: Option<&RawValue>) -> Option<String> {
    let json = raw?.get();
    let inside = json.strip_prefix('"')?.strip_suffix('"')?;
    if !inside.contains('\\') {
        return Some(inside.to_owned());
    }
    serde_json::from_str(json).ok()
}

fn is_number(raw: &RawValue) -> bool {
    raw.get()
        .starts_with(|first: char| first == '-' || first.is_ascii_digit())
}

/// Extracts a value from its line. A value of less than half the line is copied, so that it does not hold the rest in
/// memory.
fn part(whole: &Bytes, bytes: &[u8]) -> Bytes {
    if bytes.len() < whole.len() / 2 {
        Bytes::copy_from_slice(bytes)
    } else {
        whole.slice_ref(bytes)
    }
}

#[cfg(test)]
mod tests;
