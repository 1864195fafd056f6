//! Input that arrives in parts: collected for endpoints that need all of it, and checked for those that read it as a stream.

use std::mem;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use pinion_clip::CallError;
use pinion_status::{Code, Failure};

use crate::endpoint::{Answers, Endpoint, HubCall, Input, PartPosition, failed};

/// The most bytes of an input that are collected before an endpoint receives the call.
const MAX_COLLECTED: usize = 32 * 1024 * 1024;

/// Collects the parts of an input, checks it against the schema of its command and passes the call to `invoke`.
///
/// For endpoints that cannot read input while they answer. A call whose input is complete is passed on unchanged.
pub fn with_whole_input<E: Endpoint + ?Sized>(
    endpoint: Arc<E>,
    mut call: HubCall,
    invoke: impl FnOnce(Arc<E>, HubCall) -> Answers + Send + 'static,
) -> Answers {
    let Some(more) = call.more.take() else {
        return invoke(endpoint, call);
    };
    let first = mem::take(&mut call.input);
    let collected = async move {
        let checked = collect(first, more).await.and_then(|input| {
            call.input = input;
            endpoint.check(&call)
        });
        match checked {
            Ok(()) => invoke(endpoint, call),
            Err(failure) => failed(CallError::Unanswered(failure)),
        }
    };
    Box::pin(stream::once(collected).flatten())
}

async fn collect(first: Bytes, mut more: Input) -> Result<Bytes, Failure> {
    let mut text = first.to_vec();
    while let Some(part) = more.next().await {
        append(&mut text, &part?.data)?;
    }
    Ok(or_empty_object(text))
}

fn append(text: &mut Vec<u8>, part: &[u8]) -> Result<(), Failure> {
    if text.len() + part.len() > MAX_COLLECTED {
        let message =
            format!("the input of the call exceeds {MAX_COLLECTED} bytes; send a shorter input");
        return Err(Failure::new(Code::ResourceExhausted, message));
    }
    text.extend_from_slice(part);
    Ok(())
}

fn or_empty_object(text: Vec<u8>) -> Bytes {
    if text.is_empty() {
        Bytes::from_static(b"{}")
    } else {
        text.into()
    }
}

/// The start of an input up to the part that completes its first JSON value.
pub(crate) struct FirstValue {
    pub text: Bytes,
    /// The number of bytes of `text` that a schema describes: the value, or all of it if the input has ended.
    pub length: usize,
    /// The parts that follow; `None` if the input has ended.
    pub rest: Option<Input>,
}

/// Collects parts until the first JSON value of the input is complete or the input ends.
pub(crate) async fn first_value(first: Bytes, mut more: Input) -> Result<FirstValue, Failure> {
    let mut text = first.to_vec();
    let mut scanner = ValueScanner::default();
    let mut end = scanner.push(&first);
    loop {
        if let Some(length) = end {
            return Ok(FirstValue {
                text: text.into(),
                length,
                rest: Some(more),
            });
        }
        let Some(part) = more.next().await.transpose()? else {
            break;
        };
        append(&mut text, &part.data)?;
        if part.position == PartPosition::Last {
            break;
        }
        end = scanner.push(&part.data);
    }
    let text = or_empty_object(text);
    Ok(FirstValue {
        length: text.len(),
        text,
        rest: None,
    })
}

/// Finds the end of the first JSON value in a text that arrives in parts. It does not notice whether the value is valid.
#[derive(Debug, Default)]
struct ValueScanner {
    state: ScanState,
    /// The number of open objects and arrays.
    depth: usize,
    scanned: usize,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum ScanState {
    #[default]
    BeforeValue,
    Between,
    InString,
    Escaped,
    /// A number, `true`, `false` or `null` outside of objects and arrays, which ends with white space.
    InWord,
}

impl ValueScanner {
    /// Scans the next part. Returns the number of bytes up to the end of the value once that is known.
    fn push(&mut self, part: &[u8]) -> Option<usize> {
        let end = part.iter().position(|byte| self.ends_with(*byte));
        match end {
            // A word does not include the white space behind it.
            Some(end) if self.state == ScanState::InWord => Some(self.scanned + end),
            Some(end) => Some(self.scanned + end + 1),
            None => {
                self.scanned += part.len();
                None
            }
        }
    }

    fn ends_with(&mut self, byte: u8) -> bool {
        use ScanState::{BeforeValue, Between, Escaped, InString, InWord};
        self.state = match (self.state, byte) {
            (BeforeValue, b' ' | b'\t' | b'\n' | b'\r') => BeforeValue,
            (InWord, b' ' | b'\t' | b'\n' | b'\r') => return true,
            (BeforeValue | Between, b'"') => InString,
            (BeforeValue | Between, b'{' | b'[') => {
                self.depth += 1;
                Between
            }
            (Between, b'}' | b']') => {
                self.depth -= 1;
                Between
            }
            (BeforeValue | InWord, _) => InWord,
            (InString, b'\\') => Escaped,
            (InString, b'"') => Between,
            (InString | Escaped, _) => InString,
            (Between, _) => Between,
        };
        self.state == Between && self.depth == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_value_is_found_wherever_its_parts_are_cut() {
        for (text, end) in [
            (r#"{"a":[1,{"b":"}"}]} tail"#, Some(19)),
            (r#" [] "#, Some(3)),
            (r#""a\"b\\" x"#, Some(8)),
            ("12 3", Some(2)),
            ("null\n", Some(4)),
            ("12", None),
            (r#"{"a":"x\"}"#, None),
            ("] ", Some(1)),
            ("", None),
        ] {
            for cut in 0..=text.len() {
                let mut scanner = ValueScanner::default();
                let (first, second) = text.as_bytes().split_at(cut);
                let found = scanner.push(first).or_else(|| scanner.push(second));
                assert_eq!(found, end, "{text:?} cut at {cut}");
            }
        }
    }
}
