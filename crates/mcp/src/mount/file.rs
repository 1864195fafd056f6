//! Reads the file that lists the servers to mount, in the form that MCP clients share:
//!
//! ```json
//! {"mcpServers": {
//!   "files": {"command": "npx", "args": ["-y", "some-server", "/srv"], "env": {"MODE": "ro"}},
//!   "issues": {"url": "https://mcp.example.com/mcp", "headers": {"Authorization": "Bearer ${ISSUES_TOKEN}"}}
//! }}
//! ```
//!
//! `${NAME}` is replaced by an environment variable of the hub, `${NAME:-else}` by the variable or, if it is unset, by
//! `else`. A server with `"disabled": true` is skipped. `cwd` is the working directory of a program; `pass` lists the
//! variables that it inherits although they look like secrets.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use pinion_clip::alias;
use pinion_status::{Code, Failure};
use serde::Deserialize;

use super::{MountConfig, Target};

#[derive(Debug, Deserialize)]
struct File {
    #[serde(default, rename = "mcpServers")]
    servers: BTreeMap<String, Entry>,
}

#[derive(Debug, Deserialize)]
struct Entry {
    #[serde(default, rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    cwd: Option<PathBuf>,
    #[serde(default)]
    pass: Vec<String>,
    #[serde(default)]
    url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    disabled: bool,
}

/// Parses the list of servers to mount. Programs run in `directory` unless the file sets `cwd`.
pub fn read_mounts(text: &str, directory: &Path) -> Result<Vec<MountConfig>, Failure> {
    read(text, directory, &|name| std::env::var(name).ok())
}

type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

fn read(text: &str, directory: &Path, lookup: Lookup<'_>) -> Result<Vec<MountConfig>, Failure> {
    let unreadable = |error: &dyn std::fmt::Display| {
        Failure::invalid(format!("the list of MCP servers: {error}"))
    };
    if !text.trim_start().starts_with('{') {
        return Err(unreadable(&"it is not a JSON object"));
    }
    let file: File = serde_json::from_str(text).map_err(|error| unreadable(&error))?;
    let mut mounts: Vec<MountConfig> = Vec::new();
    for (name, entry) in file.servers {
        if entry.disabled {
            continue;
        }
        let wrong = |what: String| Failure::invalid(format!("MCP server \"{name}\": {what}"));
        let Some(alias) = alias::normalise(&name) else {
            return Err(wrong("its name has no letter or digit".to_owned()));
        };
        if mounts.iter().any(|mount| mount.alias == alias) {
            let message = format!(
                "MCP server \"{name}\": another server has the alias \"{alias}\" too; rename one of them"
            );
            return Err(Failure::new(Code::AlreadyExists, message));
        }
        let target = entry.target(directory, lookup).map_err(wrong)?;
        mounts.push(MountConfig::new(alias, target));
    }
    Ok(mounts)
}

impl Entry {
    fn target(self, directory: &Path, lookup: Lookup<'_>) -> Result<Target, String> {
        let pairs = |pairs: BTreeMap<String, String>| {
            let pairs = pairs.into_iter();
            pairs
                .map(|(name, value)| Ok((name, filled(&value, lookup)?)))
                .collect::<Result<Vec<_>, String>>()
        };
        match (self.command, self.url, self.kind.as_deref()) {
            (_, _, Some("sse")) => Err(
                "the transport \"sse\" of 2024 is not supported; use the server's URL for streamable HTTP"
                    .to_owned(),
            ),
            (Some(command), None, None | Some("stdio")) => {
                let words = std::iter::once(&command).chain(&self.args);
                let words: Vec<_> = words
                    .map(|word| filled(word, lookup).map(Into::into))
                    .collect::<Result<_, _>>()?;
                let variables = pairs(self.env)?.into_iter();
                Ok(Target::Command {
                    words,
                    directory: directory.join(self.cwd.unwrap_or_default()),
                    variables: variables
                        .map(|(name, value)| (name.into(), value.into()))
                        .collect(),
                    pass: self.pass,
                })
            }
            (None, Some(url), None | Some("http" | "streamable-http" | "streamableHttp")) => {
                Ok(Target::Http {
                    url: filled(&url, lookup)?,
                    headers: pairs(self.headers)?,
                })
            }
            _ => Err(
                "set either \"command\" or \"url\", and a \"type\" that matches"
                    .to_owned(),
            ),
        }
    }
}

/// Replaces the variables in a text.
fn filled(text: &str, lookup: Lookup<'_>) -> Result<String, String> {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((variable, after)) = after.split_once('}') else {
            break;
        };
        let (name, otherwise) = match variable.split_once(":-") {
            Some((name, otherwise)) => (name, Some(otherwise)),
            None => (variable, None),
        };
        let value = lookup(name).filter(|value| !value.is_empty() || otherwise.is_none());
        match value.as_deref().or(otherwise) {
            Some(value) => filled.extend([before, value]),
            None => return Err(format!("the variable {name} is not set")),
        }
        rest = after;
    }
    filled.push_str(rest);
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Vec<MountConfig>, Failure> {
        let lookup = |name: &str| (name == "KEY").then(|| "k3y".to_owned());
        read(text, Path::new("/base"), &lookup)
    }

    #[test]
    fn servers_in_the_form_clients_share() {
        let text = r#"{"other": 1, "mcpServers": {
            "My Files": {"command": "npx", "args": ["-y", "${KEY}", "${MODE:-ro}"], "env": {"A": "${KEY}!"}, "cwd": "sub", "pass": ["P"]},
            "web": {"type": "http", "url": "https://x.example/${KEY}", "headers": {"Authorization": "Bearer ${KEY}"}},
            "off": {"command": "${NOBODY}", "disabled": true}
        }}"#;
        let mounts = parsed(text).unwrap();
        let aliases: Vec<_> = mounts.iter().map(|mount| mount.alias.as_str()).collect();
        assert_eq!(aliases, ["my-files", "web"]);
        let Target::Command {
            words,
            directory,
            variables,
            pass,
        } = &mounts[0].target
        else {
            panic!("{mounts:?}");
        };
        assert_eq!(*words, ["npx", "-y", "k3y", "ro"]);
        assert_eq!(directory, Path::new("/base/sub"));
        assert_eq!(*variables, [("A".into(), "k3y!".into())]);
        assert_eq!(*pass, ["P"]);
        let Target::Http { url, headers } = &mounts[1].target else {
            panic!("{mounts:?}");
        };
        assert_eq!(url, "https://x.example/k3y");
        assert_eq!(*headers, [("Authorization".into(), "Bearer k3y".into())]);
        assert!(!format!("{:?}", mounts[0]).contains("k3y!"));
        assert!(parsed("{}").unwrap().is_empty());
    }

    #[test]
    fn errors_name_the_server() {
        for (text, words) in [
            ("[]", "list of MCP servers"),
            (r#"{"mcpServers":{"a":{}}}"#, "\"a\": set either"),
            (
                r#"{"mcpServers":{"a":{"command":"x","url":"y"}}}"#,
                "\"a\": set either",
            ),
            (
                r#"{"mcpServers":{"a":{"command":"x","type":"http"}}}"#,
                "\"a\": set either",
            ),
            (r#"{"mcpServers":{"a":{"url":"x","type":"sse"}}}"#, "sse"),
            (
                r#"{"mcpServers":{"a":{"command":"${NOBODY}"}}}"#,
                "NOBODY is not set",
            ),
            (r#"{"mcpServers":{"@":{"command":"x"}}}"#, "no letter"),
            (
                r#"{"mcpServers":{"a b":{"command":"x"},"a.b":{"command":"x"}}}"#,
                "\"a-b\" too",
            ),
        ] {
            let failure = parsed(text).unwrap_err();
            assert!(
                failure.message.contains(words),
                "{text}: {}",
                failure.message
            );
        }
    }

    #[test]
    fn text_that_is_not_a_variable_stays() {
        let lookup = |name: &str| (name == "EMPTY").then(String::new);
        for text in ["$HOME", "${open", "a}b", ""] {
            assert_eq!(filled(text, &lookup).as_deref(), Ok(text));
        }
        assert_eq!(filled("<${EMPTY}>", &lookup).as_deref(), Ok("<>"));
        assert_eq!(filled("<${EMPTY:-x}${Y:-}>", &lookup).as_deref(), Ok("<x>"));
    }
}
