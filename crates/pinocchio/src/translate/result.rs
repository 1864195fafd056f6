//! Results of tools as the JSON text that frames and turns carry.

use pinion_agent::ToolOutput;
use pinion_message::Block;
use serde_json::Value;

/// Returns the JSON of a result, or `Error: ` and the reason if the tool failed.
pub(super) fn result_text(output: &ToolOutput, is_error: bool) -> String {
    let words: Vec<String> = output
        .content
        .iter()
        .filter_map(|block| match block {
            Block::Text(text) => Some(text.text.clone()),
            Block::Image { mime_type, .. } => Some(format!("[image {mime_type}]")),
            Block::Thinking(_) | Block::ToolCall(_) => None,
        })
        .collect();
    let data = output.details.as_ref().map(ToString::to_string);
    match (words.join("\n"), data, is_error) {
        (words, None, true) => format!("Error: {words}"),
        (words, Some(data), true) if words.is_empty() => format!("{data} | Error: failed"),
        (words, Some(_), true) => format!("Error: {words}"),
        (words, Some(data), false) if words.is_empty() => data,
        (words, _, false) => to_json_text(words),
    }
}

/// Encodes a tool's text as JSON text. JSON stays as it is, except a string, because decoding it would remove its
/// quotes.
pub(crate) fn to_json_text(words: String) -> String {
    let is_string = words.trim_start().starts_with('"');
    if !is_string && serde_json::from_str::<Value>(&words).is_ok() {
        words
    } else {
        Value::String(words).to_string()
    }
}

/// Decodes the JSON text of a result to the text that the model received.
pub(crate) fn from_json_text(result: &str) -> String {
    serde_json::from_str(result).unwrap_or_else(|_| result.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_json_and_reads_as_it_was() {
        for (words, text) in [
            ("a.txt\nb.txt\n", r#""a.txt\nb.txt\n""#),
            ("", r#""""#),
            (r#"{"celsius":-3}"#, r#"{"celsius":-3}"#),
            ("[1, 2]\n", "[1, 2]\n"),
            ("-3", "-3"),
            ("true", "true"),
            (r#""quoted""#, r#""\"quoted\"""#),
            (r#"{"cut": "#, r#""{\"cut\": ""#),
        ] {
            assert_eq!(to_json_text(words.to_owned()), text);
            assert_eq!(from_json_text(text), words);
        }
    }

    #[test]
    fn a_result_that_other_programs_kept_as_plain_words_is_told_as_it_is() {
        assert_eq!(from_json_text("no JSON"), "no JSON");
    }
}
