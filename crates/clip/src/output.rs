//! Joins the outputs of a call for callers that want a single answer.

use bytes::{BufMut, Bytes, BytesMut};

use crate::{ClipError, Code};

/// The longest joined answer, in bytes.
pub const MAX_OUTPUT: usize = 32 * 1024 * 1024;

pub(crate) const EMPTY_OBJECT: Bytes = Bytes::from_static(b"{}");

/// Joins the outputs of a call, each of them JSON text. No output gives `{}`, one output stays unchanged, strings are
/// concatenated, and everything else becomes an array.
#[derive(Debug, Default)]
pub struct Aggregate {
    outputs: Vec<Bytes>,
    bytes: usize,
}

impl Aggregate {
    /// Adds the next output. Fails if the answer becomes longer than [`MAX_OUTPUT`].
    pub fn push(&mut self, output: Bytes) -> Result<(), ClipError> {
        self.bytes += output.len() + 1;
        if self.bytes > MAX_OUTPUT {
            return Err(ClipError::new(
                Code::ResourceExhausted,
                "the answer is longer than 32 MiB; ask for it as a stream",
            ));
        }
        self.outputs.push(output);
        Ok(())
    }

    /// Returns the joined output.
    pub fn finish(mut self) -> Bytes {
        if self.outputs.len() < 2 {
            return self.outputs.pop().unwrap_or(EMPTY_OBJECT);
        }
        let texts = self
            .outputs
            .iter()
            .map(|output| serde_json::from_slice::<String>(output).ok());
        if let Some(texts) = texts.collect::<Option<Vec<_>>>()
            && let Ok(text) = serde_json::to_vec(&texts.concat())
        {
            return text.into();
        }
        let mut array = BytesMut::with_capacity(self.bytes + 2);
        for output in &self.outputs {
            array.put_u8(if array.is_empty() { b'[' } else { b',' });
            array.put_slice(output);
        }
        array.put_u8(b']');
        array.freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(outputs: &[&'static str]) -> Bytes {
        let mut aggregate = Aggregate::default();
        for output in outputs {
            aggregate
                .push(Bytes::from_static(output.as_bytes()))
                .unwrap();
        }
        aggregate.finish()
    }

    #[test]
    fn one_answer_of_many() {
        assert_eq!(joined(&[]), "{}");
        assert_eq!(joined(&["1.50"]), "1.50");
        assert_eq!(joined(&["\"Hel\"", "\"lo \\u00fc\""]), "\"Hello ü\"");
        assert_eq!(
            joined(&["{\"n\":1}", "\"a\"", "9007199254740993"]),
            "[{\"n\":1},\"a\",9007199254740993]"
        );
    }

    #[test]
    fn an_answer_has_an_end() {
        let mut aggregate = Aggregate::default();
        let big = Bytes::from(format!("\"{}\"", "x".repeat(MAX_OUTPUT / 2)));
        aggregate.push(big.clone()).unwrap();
        assert_eq!(
            aggregate.push(big).unwrap_err().code,
            Code::ResourceExhausted
        );
    }
}
