//! Explanations of JSON errors for the people who wrote the JSON.
//!
//! serde describes a mismatch by the types of the program that reads (`internally tagged enum
//! Stored`). A person who edits a file, or calls a command, needs the member, the value found
//! there, and the kind of value that fits.

use serde_json::error::Category;

/// The longest quote of a value in a message, in characters.
const MAX_QUOTE: usize = 60;

/// Describes `error` without its position, which is relative to the parsed text: see
/// [`explain_with_position`].
pub fn explain(error: &serde_json::Error) -> String {
    match error.classify() {
        Category::Eof => {
            "it ends in the middle; a closing quote, bracket or brace is missing".to_owned()
        }
        Category::Io => "it could not be read to its end".to_owned(),
        Category::Syntax => syntax(without_position(&error.to_string())),
        Category::Data => mismatch(without_position(&error.to_string())),
    }
}

/// Describes `error` with its line and column in the text.
pub fn explain_with_position(error: &serde_json::Error) -> String {
    match error.line() {
        0 => explain(error),
        line => format!("line {line}, column {}: {}", error.column(), explain(error)),
    }
}

fn without_position(words: &str) -> &str {
    words
        .rsplit_once(" at line ")
        .map_or(words, |(what, _)| what)
}

fn syntax(words: &str) -> String {
    let plain = match words {
        "expected value" => "a value is expected here",
        "expected ident" => "only true, false and null are written without quotes",
        "expected `:`" => "a colon is missing after the name of a member",
        "expected `,` or `]`" => "a comma or the end of the list is missing",
        "expected `,` or `}`" => "a comma or the end of the object is missing",
        "expected `\"`" | "key must be a string" => "the name of a member must be in quotes",
        "trailing comma" => "there is a comma too many",
        "trailing characters" => "something follows after its end",
        "invalid number" => "this is not a number",
        "number out of range" => "the number is too large",
        "invalid escape" => "there is a backslash that escapes nothing; write \\\\ for one",
        "invalid unicode code point" => "it contains bytes that are not UTF-8",
        "recursion limit exceeded" => "it is nested too deeply",
        _ if words.starts_with("control character") => {
            "a text contains a line break or another control character; write \\n for a line break"
        }
        _ if words.contains("surrogate") || words.contains("hex escape") => {
            "a \\u escape is not a character"
        }
        _ => "it is not JSON",
    };
    plain.to_owned()
}

fn mismatch(words: &str) -> String {
    if let Some(name) = words.strip_prefix("missing field ") {
        return format!("\"{}\" is missing", unticked(name));
    }
    if let Some(name) = words.strip_prefix("duplicate field ") {
        return format!("\"{}\" appears twice", unticked(name));
    }
    for (start, noun) in [("unknown field ", "member"), ("unknown variant ", "value")] {
        let Some(rest) = words.strip_prefix(start) else {
            continue;
        };
        let (name, known) = rest.rsplit_once(", expected ").unwrap_or((rest, ""));
        let known = ticked(known).join(", ");
        let name = quoted(unticked(name));
        return if known.is_empty() {
            format!("unknown {noun} {name}")
        } else {
            format!("unknown {noun} {name}; use one of {known}")
        };
    }
    let found = ["invalid type: ", "invalid value: ", "invalid length "];
    let found = found.iter().find_map(|start| words.strip_prefix(start));
    if let Some((found, wanted)) = found.and_then(|rest| rest.rsplit_once(", expected ")) {
        return match (value(found), kind(wanted)) {
            (Some(found), Some(wanted)) => format!("expected {wanted}, found {found}"),
            (Some(found), None) => format!("{found} does not fit here"),
            (None, Some(wanted)) => format!("expected {wanted}"),
            (None, None) => "it does not have the expected form".to_owned(),
        };
    }
    if is_internal(words) {
        "it does not have any of the expected forms".to_owned()
    } else {
        words.to_owned()
    }
}

/// Describes the value that was found in JSON's terms; `None` if serde's description would not help
/// a person.
fn value(found: &str) -> Option<String> {
    Some(match found {
        "null" | "unit value" | "Option value" => "null".to_owned(),
        "map" => "an object".to_owned(),
        "sequence" => "a list".to_owned(),
        _ => {
            if let Some(text) = found.strip_prefix("string ") {
                let text: String = serde_json::from_str(text).unwrap_or_else(|_| text.to_owned());
                return Some(format!("the text {}", quoted(text.trim_matches('"'))));
            }
            for start in ["integer ", "floating point ", "number "] {
                if let Some(number) = found.strip_prefix(start) {
                    return Some(format!("the number {}", unticked(number)));
                }
            }
            let truth = found.strip_prefix("boolean ")?;
            unticked(truth).to_owned()
        }
    })
}

/// Describes the kind of value that fits; `None` if serde gave only the name of a type.
fn kind(wanted: &str) -> Option<String> {
    let plain = match wanted {
        "a string" | "a borrowed string" | "string" | "str" => "text",
        "a boolean" => "true or false",
        "a sequence" => "a list",
        "a map" | "map" => "an object",
        "unit" | "null" => "null",
        "u8" | "u16" | "u32" | "u64" | "u128" | "usize" => "a whole number from 0",
        "i8" | "i16" | "i32" | "i64" | "i128" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        "string or map" => "text or an object",
        _ if wanted.starts_with("struct ") => "an object",
        _ if wanted.starts_with("internally tagged enum ") => "an object",
        _ if is_internal(wanted) => return None,
        other => other,
    };
    Some(plain.to_owned())
}

/// Reports whether `words` name a type of the program.
fn is_internal(words: &str) -> bool {
    let names = [
        "enum",
        "struct",
        "variant",
        "tuple",
        "newtype",
        "identifier",
    ];
    words.split_whitespace().any(|word| names.contains(&word))
}

fn unticked(name: &str) -> &str {
    name.trim_matches('`')
}

/// Returns the names between backticks, in order.
fn ticked(words: &str) -> Vec<&str> {
    words.split('`').skip(1).step_by(2).collect()
}

fn quoted(text: &str) -> String {
    let mut shown: String = text.chars().take(MAX_QUOTE).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    format!("\"{shown}\"")
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde::de::DeserializeOwned;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code, reason = "only read")]
    struct Plain {
        id: String,
        count: Option<u32>,
        price: Option<f64>,
        list: Option<Vec<bool>>,
        colour: Option<Colour>,
        any: Option<Any>,
        tagged: Option<Tagged>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Colour {
        Red,
        Green,
    }

    #[derive(Debug, Deserialize)]
    #[serde(untagged)]
    #[allow(dead_code, reason = "only read")]
    enum Any {
        Text(String),
        Number(u8),
    }

    #[derive(Debug, Deserialize)]
    #[serde(tag = "type")]
    #[allow(dead_code, reason = "only read")]
    enum Tagged {
        A { x: u8 },
    }

    fn said<T: DeserializeOwned + std::fmt::Debug>(text: &str) -> String {
        explain(&serde_json::from_str::<T>(text).unwrap_err())
    }

    #[test]
    fn mismatches_name_the_value_and_the_kind_that_fits() {
        for (text, words) in [
            ("{}", "\"id\" is missing"),
            (r#"{"id":7}"#, "expected text, found the number 7"),
            (r#"{"id":{}}"#, "expected text, found an object"),
            (r#"{"id":[1]}"#, "expected text, found a list"),
            (r#"{"id":null}"#, "expected text, found null"),
            (
                r#"{"id":"a","count":-1}"#,
                "expected a whole number from 0, found the number -1",
            ),
            (
                r#"{"id":"a","count":"b"}"#,
                "expected a whole number from 0, found the text \"b\"",
            ),
            (
                r#"{"id":"a","price":true}"#,
                "expected a number, found true",
            ),
            (
                r#"{"id":"a","list":[1.5]}"#,
                "expected true or false, found the number 1.5",
            ),
            (
                r#"{"id":"a","colour":"blue"}"#,
                "unknown value \"blue\"; use one of red, green",
            ),
            (
                r#"{"id":"a","ip":1}"#,
                "unknown member \"ip\"; use one of id, count, price, list, colour, any, tagged",
            ),
            (r#"{"id":"a","id":"b"}"#, "\"id\" appears twice"),
            (
                r#"{"id":"a","any":[]}"#,
                "it does not have any of the expected forms",
            ),
            (
                r#"{"id":"a","tagged":5}"#,
                "expected an object, found the number 5",
            ),
            (r#"{"id":"a","tagged":{}}"#, "\"type\" is missing"),
            ("5", "expected an object, found the number 5"),
        ] {
            assert_eq!(said::<Plain>(text), words, "{text}");
        }
    }

    #[test]
    fn no_word_of_the_parser_is_left() {
        for text in [
            "",
            "{",
            "[1,",
            "{\"a\" 1}",
            "{a:1}",
            "[1 2]",
            "{\"a\":1 \"b\"}",
            "nul",
            "[1,]",
            "1 2",
            "1.e",
            "-",
            "\"\\x\"",
            "\"\\ud800\"",
            "\"\\u12\"",
            "\"a\nb\"",
            "1e999",
            "}",
        ] {
            let said = said::<serde_json::Value>(text);
            for word in [
                "EOF",
                "parsing",
                "expected `",
                "trailing",
                "ident",
                "escape at",
                "code point",
                "line",
            ] {
                assert!(
                    !said.contains(word) || said.contains("line break"),
                    "{text}: {said}"
                );
            }
        }
        let error = serde_json::from_str::<serde_json::Value>("{\n \"a\": }").unwrap_err();
        assert_eq!(
            explain_with_position(&error),
            "line 2, column 7: a value is expected here"
        );
    }

    #[test]
    fn long_values_are_cut() {
        let text = format!(r#"{{"id":"a","count":"{}"}}"#, "é".repeat(500));
        assert!(said::<Plain>(&text).len() < 250);
    }
}
