//! Finds one member of a JSON object without parsing the whole line.
//!
//! Nothing is allocated and nothing after the member is read, so that lines which adapters ignore take little time.

/// Returns the value of the top-level member `name`, if the line is an object and the value is a string without
/// escapes.
pub(crate) fn member<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let mut at = skip_space(line, 0);
    if line.get(at) != Some(&b'{') {
        return None;
    }
    at += 1;
    loop {
        at = skip_space(line, at);
        if line.get(at) != Some(&b'"') {
            return None;
        }
        let key_end = string_end(line, at)?;
        let key = &line[at + 1..key_end];
        at = skip_space(line, key_end + 1);
        if line.get(at) != Some(&b':') {
            return None;
        }
        at = skip_space(line, at + 1);
        if key == name {
            if line.get(at) != Some(&b'"') {
                return None;
            }
            let end = string_end(line, at)?;
            let text = &line[at + 1..end];
            return memchr::memchr(b'\\', text).is_none().then_some(text);
        }
        at = skip_space(line, value_end(line, at)?);
        match line.get(at) {
            Some(b',') => at += 1,
            _ => return None,
        }
    }
}

/// Reports whether the line starts and ends like an object.
pub(crate) fn is_object(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    line.len() >= 2 && line.first() == Some(&b'{') && line.last() == Some(&b'}')
}

fn skip_space(line: &[u8], at: usize) -> usize {
    let rest = line.get(at..).unwrap_or_default();
    let spaces = rest.iter().take_while(|byte| byte.is_ascii_whitespace());
    at + spaces.count()
}

/// Returns the position of the closing quote of the string that starts at `at`.
fn string_end(line: &[u8], at: usize) -> Option<usize> {
    let mut from = at + 1;
    loop {
        let found = from + memchr::memchr2(b'"', b'\\', line.get(from..)?)?;
        match line[found] {
            b'"' => return Some(found),
            _ => from = found + 2,
        }
    }
}

/// Returns the position after the value that starts at `at`.
fn value_end(line: &[u8], mut at: usize) -> Option<usize> {
    let mut depth = 0usize;
    loop {
        match line.get(at)? {
            b'"' => {
                at = string_end(line, at)? + 1;
                if depth == 0 {
                    return Some(at);
                }
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth == 0 => return Some(at),
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            b',' if depth == 0 => return Some(at),
            _ => {}
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    #[test]
    fn a_member_is_found_wherever_it_stands() {
        for (line, kind) in [
            (r#"{"type":"a","x":1}"#, Some("a")),
            (
                r#"  { "x" : {"type":"inner","y":[1,"}",2]} , "type" : "b" }"#,
                Some("b"),
            ),
            (r#"{"x":"\"type\":\"no\\","type":"c"}"#, Some("c")),
            (r#"{"x":1.5e3,"y":null,"type":"d"}"#, Some("d")),
            (r#"{"type":5}"#, None),
            (r#"{"type":"\u0061"}"#, None),
            (r#"{}"#, None),
            (r#"["type"]"#, None),
            (r#"{"x":"unfinished"#, None),
            ("words", None),
        ] {
            let found =
                member(line.as_bytes(), b"type").map(|text| std::str::from_utf8(text).unwrap());
            assert_eq!(found, kind, "{line}");
        }
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "[a-z\"\\\\{}\\[\\],: ]{0,12}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 16, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::btree_map("[a-z\"\\\\]{0,4}", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn it_agrees_with_a_parser(before in value(), after in value(), kind in "[a-z_.]{0,10}") {
            let line = json!({"x": before, "type": kind, "y": after}).to_string();
            prop_assert_eq!(member(line.as_bytes(), b"type"), Some(kind.as_bytes()));
        }

        #[test]
        fn any_bytes_are_accepted(bytes in proptest::collection::vec(prop_oneof![
            Just(b'"'), Just(b'{'), Just(b'}'), Just(b'\\'), Just(b':'), Just(b','), any::<u8>()
        ], 0..60)) {
            let _ = member(&bytes, b"type");
        }
    }
}
