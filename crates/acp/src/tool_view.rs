//! A tool call as editors show it: its kind, title, places and arguments.

use std::path::{Component, Path, PathBuf};

use serde_json::{Map, Value, json};

/// The longest command in a title, in characters.
const MAX_TITLE_CHARS: usize = 4000;
/// The longest arguments that are sent as they are, in bytes of JSON.
const MAX_INPUT_BYTES: usize = 64 << 10;
/// Characters that stay of a long text in longer arguments.
const CUT_TEXT_CHARS: usize = 1000;
/// The largest details that are sent, in bytes of JSON.
const MAX_OUTPUT_BYTES: usize = 16 << 10;

/// Returns the kind of a tool.
pub(crate) fn kind(tool: &str) -> &'static str {
    match tool {
        "read" => "read",
        "edit" | "write" => "edit",
        "bash" => "execute",
        "grep" | "find" | "ls" => "search",
        _ => "other",
    }
}

/// Returns the title of a call.
pub(crate) fn title(tool: &str, arguments: &Value, cwd: &Path) -> String {
    let text = |name: &str| arguments[name].as_str();
    let place = |name: &str| text(name).map(|path| shown_path(path, cwd));
    let title = match tool {
        "bash" => text("command").map(str::to_owned),
        "read" => place("path").map(|path| match arguments["offset"].as_u64() {
            Some(line) => format!("Read {path}:{line}"),
            None => format!("Read {path}"),
        }),
        "edit" => place("path").map(|path| format!("Edit {path}")),
        "write" => place("path").map(|path| format!("Write {path}")),
        "grep" | "find" => text("pattern").map(|pattern| {
            let verb = if tool == "grep" { "Search" } else { "Find" };
            match place("path") {
                Some(path) => format!("{verb} \"{pattern}\" in {path}"),
                None => format!("{verb} \"{pattern}\""),
            }
        }),
        "ls" => Some(format!(
            "List {}",
            place("path").unwrap_or_else(|| ".".into())
        )),
        _ => tool_of_server(tool),
    };
    visible(&title.unwrap_or_else(|| tool.to_owned()))
}

/// Returns `SERVER: TOOL` for a tool of an MCP server.
fn tool_of_server(tool: &str) -> Option<String> {
    let (server, tool) = tool.strip_prefix("mcp__")?.split_once("__")?;
    Some(format!("{server}: {tool}"))
}

/// Returns a path relative to the working directory if it is inside.
fn shown_path(path: &str, cwd: &Path) -> String {
    let inside = Path::new(path).strip_prefix(cwd);
    match inside {
        Ok(inside) if inside.as_os_str().is_empty() => ".".to_owned(),
        Ok(inside) => inside.display().to_string(),
        Err(_) => path.to_owned(),
    }
}

/// Returns a title without characters that hide a part of it, and not longer than the limit. Line breaks stay, because
/// users must see what they allow.
fn visible(title: &str) -> String {
    let lines: Vec<String> = title.split('\n').map(pinion_approval::visible).collect();
    let title = lines.join("\n");
    let length = title.chars().count();
    if length <= MAX_TITLE_CHARS {
        return title;
    }
    let part = MAX_TITLE_CHARS / 2;
    let begin: String = title.chars().take(part).collect();
    let end: String = title.chars().skip(length - part).collect();
    format!("{begin} … {} more characters … {end}", length - 2 * part)
}

/// Returns the absolute path that an argument names.
pub(crate) fn absolute(path: &str, cwd: &Path) -> PathBuf {
    let mut absolute = PathBuf::new();
    for part in cwd.join(path).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(absolute.pop()),
            part => absolute.push(part),
        }
    }
    absolute
}

/// Returns the places that a call touches; `None` if it names no file. `line` is the first changed line.
pub(crate) fn locations(
    tool: &str,
    arguments: &Value,
    cwd: &Path,
    line: Option<usize>,
) -> Option<Value> {
    if !matches!(kind(tool), "read" | "edit") {
        return None;
    }
    let path = absolute(arguments["path"].as_str()?, cwd);
    let mut location = json!({ "path": path.display().to_string() });
    let offset = arguments["offset"].as_u64().filter(|_| tool == "read");
    if let Some(line) = line.map(|line| line as u64).or(offset) {
        location["line"] = line.into();
    }
    Some(json!([location]))
}

/// Returns the arguments of a call; long texts in large arguments are cut.
pub(crate) fn raw_input(arguments: &Value) -> Value {
    if arguments.to_string().len() <= MAX_INPUT_BYTES {
        return arguments.clone();
    }
    let mut texts = 0;
    cut(arguments, &mut texts)
}

fn cut(value: &Value, budget: &mut usize) -> Value {
    match value {
        Value::String(text) => {
            let length = text.chars().count();
            *budget += length.min(CUT_TEXT_CHARS);
            if length <= CUT_TEXT_CHARS {
                return value.clone();
            }
            let begin: String = text.chars().take(CUT_TEXT_CHARS).collect();
            let rest = length - CUT_TEXT_CHARS;
            format!("{begin} … {rest} more characters").into()
        }
        _ if *budget > MAX_INPUT_BYTES => Value::Null,
        Value::Array(items) => items.iter().map(|item| cut(item, budget)).collect(),
        Value::Object(members) => {
            let cut = members
                .iter()
                .map(|(name, value)| (name.clone(), cut(value, budget)));
            Value::Object(cut.collect::<Map<_, _>>())
        }
        value => value.clone(),
    }
}

/// Returns the details of a result for programs; `None` if there are none, if they are large, or if the content has them.
pub(crate) fn raw_output(
    tool: &str,
    details: Option<&Value>,
    exit_code: Option<i32>,
) -> Option<Value> {
    let mut output = Map::new();
    if let Some(code) = exit_code {
        output.insert("exitCode".into(), code.into());
    }
    let known = ["approval", "server", "tool"];
    if !matches!(tool, "edit" | "write")
        && let Some(details) = details.and_then(Value::as_object)
    {
        for (name, value) in details
            .iter()
            .filter(|(name, _)| !known.contains(&name.as_str()))
        {
            let mut value = value.clone();
            if let Some(members) = value.as_object_mut() {
                members.remove("content");
            }
            output.insert(name.clone(), value);
        }
    }
    let output = Value::Object(output);
    let is_empty = output.as_object().is_none_or(Map::is_empty);
    (!is_empty && output.to_string().len() <= MAX_OUTPUT_BYTES).then_some(output)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(tool: &str, arguments: Value) -> String {
        title(tool, &arguments, Path::new("/home/u/project"))
    }

    #[test]
    fn titles_name_what_is_done() {
        for (tool, arguments, expected) in [
            ("bash", json!({"command": "a &&\nb"}), "a &&\nb"),
            (
                "read",
                json!({"path": "/home/u/project/src/a.rs"}),
                "Read src/a.rs",
            ),
            ("read", json!({"path": "a.rs", "offset": 5}), "Read a.rs:5"),
            ("edit", json!({"path": "/etc/hosts"}), "Edit /etc/hosts"),
            ("write", json!({"path": "b.txt"}), "Write b.txt"),
            (
                "grep",
                json!({"pattern": "x", "path": "src"}),
                "Search \"x\" in src",
            ),
            ("find", json!({"pattern": "*.rs"}), "Find \"*.rs\""),
            ("ls", json!({}), "List ."),
            ("mcp__files__search", json!({}), "files: search"),
            ("todo", json!({}), "todo"),
            ("bash", json!({"command": 5}), "bash"),
        ] {
            assert_eq!(shown(tool, arguments), expected);
        }
    }

    #[test]
    fn a_title_hides_nothing() {
        let title = shown("bash", json!({"command": "echo \u{202e}a\u{1b}[2K"}));
        assert!(!title.contains(['\u{202e}', '\u{1b}']), "{title:?}");
        let long = format!("begin{}end", "x".repeat(9000));
        let title = shown("bash", json!({ "command": long }));
        assert!(
            title.starts_with("begin") && title.ends_with("end"),
            "{title}"
        );
    }

    #[test]
    fn locations_are_absolute() {
        let cwd = Path::new("/home/u/project");
        let places = |tool, arguments: Value| locations(tool, &arguments, cwd, None);
        assert_eq!(
            places("read", json!({"path": "../a.txt", "offset": 3})),
            Some(json!([{"path": "/home/u/a.txt", "line": 3}]))
        );
        assert_eq!(places("bash", json!({"path": "a"})), None);
        assert_eq!(places("edit", json!({})), None);
    }

    #[test]
    fn large_arguments_are_cut_and_keep_their_members() {
        let cut = raw_input(&json!({"path": "a", "content": "x".repeat(1 << 20)}));
        assert_eq!(cut["path"], "a");
        assert!(cut.to_string().len() < MAX_INPUT_BYTES);
        let many: Vec<String> = (0..100_000).map(|n| format!("{n} and more")).collect();
        assert!(raw_input(&json!({ "list": many })).to_string().len() < 2 << 20);
    }
}
