//! The first line of a script, which may set limits: `// @options: {"timeout_ms": 60000}`.

use std::time::Duration;

use serde_json::Value;

const MARKER: &str = "// @options:";
/// The default limit of the output, in estimated tokens.
const DEFAULT_OUTPUT_TOKENS: usize = 10_000;
/// The largest limit of the output, in estimated tokens.
const MAX_OUTPUT_TOKENS: u64 = 1_000_000;

/// The limits of a script.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ScriptOptions {
    /// Estimated tokens of output that the model sees.
    pub output_tokens: usize,
    /// Time limit of the script, including the wait for an engine.
    pub timeout: Option<Duration>,
}

impl ScriptOptions {
    /// Reads the first line of a script. The error is a sentence.
    pub fn read(code: &str) -> Result<Self, String> {
        let mut options = Self {
            output_tokens: DEFAULT_OUTPUT_TOKENS,
            timeout: None,
        };
        let mut lines = code.lines();
        let first = lines.next().unwrap_or_default().trim();
        if lines.any(|line| line.trim_start().starts_with(MARKER)) {
            return Err(format!("{MARKER} must be the first line of the script"));
        }
        let Some(text) = first.strip_prefix(MARKER) else {
            return Ok(options);
        };
        let Ok(Value::Object(members)) = serde_json::from_str(text.trim()) else {
            return Err(format!("{MARKER} must be followed by a JSON object"));
        };
        for (name, value) in members {
            let number = value.as_u64().filter(|number| *number > 0);
            let number = number.ok_or_else(|| format!("{name} must be a positive whole number"))?;
            match name.as_str() {
                "max_output_tokens" => {
                    options.output_tokens = number.min(MAX_OUTPUT_TOKENS) as usize;
                }
                "timeout_ms" => options.timeout = Some(Duration::from_millis(number)),
                _ => {
                    return Err(format!(
                        "unknown option \"{name}\"; use max_output_tokens or timeout_ms"
                    ));
                }
            }
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_line_sets_options() {
        let read = ScriptOptions::read;
        assert_eq!(
            read("return 1").unwrap().output_tokens,
            DEFAULT_OUTPUT_TOKENS
        );
        let set = read("// @options: {\"timeout_ms\": 5, \"max_output_tokens\": 9}\nx").unwrap();
        assert_eq!(set.output_tokens, 9);
        assert_eq!(set.timeout, Some(Duration::from_millis(5)));
        for wrong in [
            "x\n// @options: {}",
            "// @options: 5",
            "// @options: {\"timeout\": 5}",
            "// @options: {\"timeout_ms\": -5}",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
