//! Many outputs as one: what a caller gets who asked for a single answer.

use serde_json::value::RawValue;

use crate::{ClipError, Code};

/// The longest single answer put together.
pub const MAX_OUTPUT: usize = 32 * 1024 * 1024;

/// Puts the outputs of a call together: none gives `{}`, one is taken as it is, texts are joined, everything else becomes
/// an array.
#[derive(Debug, Default)]
pub struct Aggregate {
    outputs: Vec<Box<RawValue>>,
    bytes: usize,
}

impl Aggregate {
    /// Takes the next output.
    pub fn push(&mut self, output: Box<RawValue>) -> Result<(), ClipError> {
        self.bytes += output.get().len() + 1;
        if self.bytes > MAX_OUTPUT {
            return Err(ClipError::new(
                Code::ResourceExhausted,
                "the answer is longer than 32 MiB; ask for it as a stream",
            ));
        }
        self.outputs.push(output);
        Ok(())
    }

    /// The one output.
    pub fn finish(mut self) -> Box<RawValue> {
        if self.outputs.len() < 2 {
            return self.outputs.pop().unwrap_or_else(empty_object);
        }
        let texts = self
            .outputs
            .iter()
            .map(|output| serde_json::from_str::<String>(output.get()).ok());
        if let Some(texts) = texts.collect::<Option<Vec<_>>>()
            && let Ok(text) = serde_json::value::to_raw_value(&texts.concat())
        {
            return text;
        }
        let mut array = String::with_capacity(self.bytes + 2);
        for output in &self.outputs {
            array.push(if array.is_empty() { '[' } else { ',' });
            array.push_str(output.get());
        }
        array.push(']');
        // Valid values between brackets and commas are a valid array.
        RawValue::from_string(array).unwrap_or_else(|_| empty_object())
    }
}

/// `{}`.
pub(crate) fn empty_object() -> Box<RawValue> {
    RawValue::from_string("{}".to_owned()).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(outputs: &[&str]) -> String {
        let mut aggregate = Aggregate::default();
        for output in outputs {
            let output = RawValue::from_string((*output).to_owned()).unwrap();
            aggregate.push(output).unwrap();
        }
        aggregate.finish().get().to_owned()
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
        let big = RawValue::from_string(format!("\"{}\"", "x".repeat(MAX_OUTPUT / 2))).unwrap();
        aggregate.push(big.clone()).unwrap();
        assert_eq!(
            aggregate.push(big).unwrap_err().code,
            Code::ResourceExhausted
        );
    }
}
