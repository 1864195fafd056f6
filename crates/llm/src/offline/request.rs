//! The plain requests the offline model recognises, and their tool calls.
//!
//! A handful of fixed forms, matched at the beginning of the message without regard to case.
//! Anything else is `None`; there is no guessing.

use pinion_message::ToolSpec;
use serde_json::{Value, json};

#[derive(Debug, Clone, PartialEq)]
pub(super) enum PlainRequest {
    List {
        path: Option<String>,
    },
    Read {
        path: String,
    },
    Run {
        command: String,
    },
    Write {
        path: String,
        content: String,
    },
    Edit {
        path: String,
        old: String,
        new: String,
    },
    Search {
        pattern: String,
        path: Option<String>,
    },
    Think {
        about: String,
    },
}

/// A tool call that is not made yet.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PlannedCall {
    pub(super) tool: &'static str,
    pub(super) arguments: Value,
}

impl PlainRequest {
    /// The request in `text`, if it has one of the known forms.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let text = strip(text, "please ").unwrap_or(text);
        let text = strip(text, "can you ")
            .or_else(|| strip(text, "could you "))
            .unwrap_or(text);
        let text = strip(text, "please ").unwrap_or(text);
        if let Some(about) = strip(text, "think about ") {
            return word(about).map(|about| Self::Think { about });
        }
        if let Some(rest) = first(text, &["run ", "execute "]) {
            return word(rest).map(|command| Self::Run { command });
        }
        if let Some(rest) = first(text, &["write ", "create "]) {
            let (path, content) = rest.split_once(':')?;
            let content = content
                .strip_prefix(['\n', ' '])
                .unwrap_or(content)
                .to_owned();
            return word(path).map(|path| Self::Write { path, content });
        }
        if let Some(rest) = strip(text, "edit ") {
            return edit(rest);
        }
        if let Some(rest) = first(text, &["search for ", "grep for ", "grep ", "look for "]) {
            let (pattern, path) = split_last(rest, " in ");
            return word(pattern).map(|pattern| Self::Search { pattern, path });
        }
        if let Some(rest) = list(text) {
            return Some(Self::List {
                path: rest.and_then(word),
            });
        }
        let path = first(
            text,
            &["read the file ", "read file ", "read ", "show me ", "cat "],
        )?;
        word(path)
            .filter(|path| !path.contains('\n'))
            .map(|path| Self::Read { path })
    }

    /// The call that carries out the request with the given tools. The error names the missing
    /// tool.
    pub(super) fn call(&self, tools: &[ToolSpec]) -> Result<PlannedCall, &'static str> {
        let has = |name: &str| tools.iter().any(|tool| tool.name == name);
        let with = |tool: &'static str, arguments: Value, otherwise: String| {
            if has(tool) {
                Ok(PlannedCall { tool, arguments })
            } else if has("bash") && !otherwise.is_empty() {
                Ok(PlannedCall {
                    tool: "bash",
                    arguments: json!({"command": otherwise}),
                })
            } else {
                Err(tool)
            }
        };
        match self {
            Self::List { path: None } => with("ls", json!({}), "ls -la".into()),
            Self::List { path: Some(path) } => with(
                "ls",
                json!({"path": path}),
                format!("ls -la -- {}", quoted(path)),
            ),
            Self::Read { path } => with(
                "read",
                json!({"path": path}),
                format!("cat -- {}", quoted(path)),
            ),
            Self::Run { command } => with("bash", json!({"command": command}), String::new()),
            Self::Write { path, content } => with(
                "write",
                json!({"path": path, "content": content}),
                String::new(),
            ),
            Self::Edit { path, old, new } => {
                // Some edit tools take one replacement, others a list.
                let spec = tools.iter().find(|tool| tool.name == "edit");
                let listed =
                    spec.is_some_and(|tool| tool.parameters["properties"]["edits"].is_object());
                let arguments = if listed {
                    json!({"path": path, "edits": [{"oldText": old, "newText": new}]})
                } else {
                    json!({"path": path, "oldText": old, "newText": new})
                };
                with("edit", arguments, String::new())
            }
            Self::Search { pattern, path } => {
                let mut arguments = json!({"pattern": pattern});
                if let Some(path) = path {
                    arguments["path"] = json!(path);
                }
                let place = quoted(path.as_deref().unwrap_or("."));
                with(
                    "grep",
                    arguments,
                    format!("grep -rn -e {} -- {place}", quoted(pattern)),
                )
            }
            // Thinking needs no tool, so it has no call.
            Self::Think { .. } => Err("think"),
        }
    }
}

/// The directory in `list the files in X`, `list files` or `ls X`; the inner value is `None` if
/// there is none.
fn list(text: &str) -> Option<Option<&str>> {
    if let Some(rest) = strip(text, "ls") {
        return match rest {
            "" => Some(None),
            _ => rest.strip_prefix(' ').map(Some),
        };
    }
    let rest = first(text, &["list ", "show me ", "show "])?;
    let rest = first(rest, &["all the ", "the ", "all "]).unwrap_or(rest);
    let rest = first(rest, &["files and directories", "files"])?;
    let rest = rest.trim_end_matches(['.', '?', '!']);
    let here = ["", "here", "in here", "in this directory", "in this folder"];
    if here.contains(&rest.trim()) {
        return Some(None);
    }
    first(rest, &[" in ", " under ", " of "]).map(Some)
}

/// `X: replace A with B`.
fn edit(rest: &str) -> Option<PlainRequest> {
    let (path, change) = rest.split_once(':')?;
    let change = strip(change.trim_start(), "replace ")?;
    let (old, new) = change.split_once(" with ")?;
    Some(PlainRequest::Edit {
        path: word(path)?,
        old: word(old)?,
        new: unquoted(new).to_owned(),
    })
}

/// The rest of `text` after `prefix`, without regard to ASCII case.
fn strip<'t>(text: &'t str, prefix: &str) -> Option<&'t str> {
    let head = text.get(..prefix.len())?;
    head.eq_ignore_ascii_case(prefix)
        .then(|| &text[prefix.len()..])
}

fn first<'t>(text: &'t str, prefixes: &[&str]) -> Option<&'t str> {
    prefixes.iter().find_map(|prefix| strip(text, prefix))
}

/// The text before the last `separator`, and the word after it.
fn split_last<'t>(text: &'t str, separator: &str) -> (&'t str, Option<String>) {
    match text.rsplit_once(separator) {
        Some((before, after)) => (before, word(after)),
        None => (text, None),
    }
}

/// The name in `text`, without blanks, quotes and the end of a sentence; `None` when nothing is
/// left.
fn word(text: &str) -> Option<String> {
    let bare = unquoted(text);
    let is_quoted = bare.len() != text.trim().len();
    // A path may end in a dot only when quoted.
    let bare = if is_quoted {
        bare
    } else {
        bare.strip_suffix('.')
            .filter(|bare| !bare.ends_with(['.', '/', ' ']))
            .unwrap_or(bare)
    };
    (!bare.is_empty()).then(|| bare.to_owned())
}

fn unquoted(text: &str) -> &str {
    let text = text.trim();
    for quote in ['`', '"', '\''] {
        let inner = text.strip_suffix('.').unwrap_or(text);
        if let Some(inner) = inner
            .strip_prefix(quote)
            .and_then(|inner| inner.strip_suffix(quote))
        {
            return inner;
        }
    }
    text
}

/// Quotes a text as one word of a shell command.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "./_-+=:,@".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::PlainRequest::*;
    use super::*;

    fn some(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn plain_requests_are_understood() {
        let path = |path: &str| path.to_owned();
        for (text, expected) in [
            ("list the files", List { path: None }),
            ("List files here.", List { path: None }),
            ("please list the files in src/", List { path: some("src/") }),
            ("ls", List { path: None }),
            ("ls docs", List { path: some("docs") }),
            (
                "read Cargo.toml",
                Read {
                    path: path("Cargo.toml"),
                },
            ),
            (
                "Read `a b.txt`.",
                Read {
                    path: path("a b.txt"),
                },
            ),
            (
                "run `ls -la | wc -l`",
                Run {
                    command: path("ls -la | wc -l"),
                },
            ),
            (
                "run cargo test",
                Run {
                    command: path("cargo test"),
                },
            ),
            (
                "write notes.md: # Hi\nthere",
                Write {
                    path: path("notes.md"),
                    content: path("# Hi\nthere"),
                },
            ),
            (
                "write a.txt:\nline\n\n  end",
                Write {
                    path: path("a.txt"),
                    content: path("line\n\n  end"),
                },
            ),
            (
                "edit a.rs: replace `x = 1` with `x = 2`",
                Edit {
                    path: path("a.rs"),
                    old: path("x = 1"),
                    new: path("x = 2"),
                },
            ),
            (
                "edit a.rs: replace \"x\" with \"\"",
                Edit {
                    path: path("a.rs"),
                    old: path("x"),
                    new: path(""),
                },
            ),
            (
                "search for TODO in src",
                Search {
                    pattern: path("TODO"),
                    path: some("src"),
                },
            ),
            (
                "grep \"fn main\"",
                Search {
                    pattern: path("fn main"),
                    path: None,
                },
            ),
            (
                "think about the weather.",
                Think {
                    about: path("the weather"),
                },
            ),
        ] {
            assert_eq!(PlainRequest::parse(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn everything_else_is_not_guessed_at() {
        for text in [
            "",
            "hello",
            "write",
            "write a poem",
            "edit a.txt: shorter",
            "list of things",
            "lsof",
            "read ",
        ] {
            assert_eq!(PlainRequest::parse(text), None, "{text}");
        }
    }

    #[test]
    fn calls_use_the_tools_that_are_there() {
        let tool = |name: &str, parameters: Value| ToolSpec {
            name: name.into(),
            description: String::new(),
            parameters,
        };
        let bash = [tool("bash", json!({}))];
        let list = List { path: some("a'b") };
        assert_eq!(
            list.call(&bash).unwrap().arguments["command"],
            r"ls -la -- 'a'\''b'"
        );
        assert_eq!(
            list.call(&[tool("ls", json!({}))]).unwrap().arguments["path"],
            "a'b"
        );
        assert_eq!(list.call(&[]), Err("ls"));
        let edit = Edit {
            path: "p".into(),
            old: "a".into(),
            new: "b".into(),
        };
        let listed = [tool(
            "edit",
            json!({"properties":{"edits":{"type":"array"}}}),
        )];
        assert_eq!(
            edit.call(&listed).unwrap().arguments["edits"][0]["newText"],
            "b"
        );
        assert_eq!(
            edit.call(&[tool("edit", json!({}))]).unwrap().arguments["newText"],
            "b"
        );
        assert_eq!(edit.call(&bash), Err("edit"));
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_or_left_alone(start in "(list|read|run|write|edit|grep|ls|think about)", rest in "\\PC{0,40}") {
            let _ = PlainRequest::parse(&format!("{start} {rest}"));
            let _ = PlainRequest::parse(&rest);
        }
    }
}
