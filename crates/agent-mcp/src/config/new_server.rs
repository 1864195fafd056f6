//! A new entry of `mcp.json`, as a command line describes it.

use serde_json::{Map, Value, json};

use crate::ServerConfig;

/// The program or the URL of a new server.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub enum NewTarget {
    Command {
        program: String,
        arguments: Vec<String>,
        /// `KEY=VALUE` pairs.
        env: Vec<String>,
        cwd: Option<String>,
    },
    Http {
        url: String,
        /// `KEY=VALUE` pairs.
        headers: Vec<String>,
        /// The variable with the token of the header `Authorization`.
        bearer_variable: Option<String>,
        /// Members of `oauth` with their texts.
        oauth: Vec<(&'static str, String)>,
        callback_port: Option<u16>,
    },
}

/// A server to add to an `mcp.json`.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub struct NewServer {
    pub name: String,
    pub target: NewTarget,
    pub exposure: Option<String>,
    pub description: Option<String>,
    /// Seconds.
    pub timeout: Option<f64>,
}

impl NewServer {
    /// Returns the entry for [`add_server`](crate::add_server). The error names the flag or the member that is wrong.
    pub fn entry(self) -> Result<Value, String> {
        let mut entry = Map::new();
        match self.target {
            NewTarget::Command {
                program,
                arguments,
                env,
                cwd,
            } => {
                entry.insert("command".into(), program.into());
                if !arguments.is_empty() {
                    entry.insert("args".into(), json!(arguments));
                }
                insert_pairs("--env", &env, "env", &mut entry)?;
                insert_text("cwd", cwd, &mut entry);
            }
            NewTarget::Http {
                url,
                headers,
                bearer_variable,
                oauth,
                callback_port,
            } => {
                entry.insert("url".into(), url.into());
                insert_pairs("--header", &headers, "headers", &mut entry)?;
                if let Some(variable) = bearer_variable {
                    let headers = entry.entry("headers").or_insert_with(|| json!({}));
                    headers["Authorization"] = format!("Bearer ${{{variable}}}").into();
                }
                let mut members = Map::new();
                for (member, text) in oauth {
                    members.insert(member.to_owned(), text.into());
                }
                if let Some(port) = callback_port {
                    members.insert("callbackPort".into(), port.into());
                }
                if !members.is_empty() {
                    entry.insert("oauth".into(), members.into());
                }
            }
        }
        insert_text("exposure", self.exposure, &mut entry);
        insert_text("description", self.description, &mut entry);
        if let Some(seconds) = self.timeout {
            entry.insert("timeout".into(), json!(seconds));
        }
        let entry = Value::Object(entry);
        match ServerConfig::read(&self.name, &entry) {
            Ok(_) => Ok(entry),
            Err(error) => Err(format!("server {:?}: {error}", self.name)),
        }
    }
}

fn insert_text(member: &str, text: Option<String>, entry: &mut Map<String, Value>) {
    if let Some(text) = text {
        entry.insert(member.to_owned(), text.into());
    }
}

fn insert_pairs(
    flag: &str,
    texts: &[String],
    member: &str,
    entry: &mut Map<String, Value>,
) -> Result<(), String> {
    let mut pairs = Map::new();
    for pair in texts {
        let split = pair.split_once('=').filter(|(name, _)| !name.is_empty());
        let (name, value) = split.ok_or_else(|| format!("{flag} needs KEY=VALUE, not {pair:?}"))?;
        pairs.insert(name.to_owned(), value.into());
    }
    if !pairs.is_empty() {
        entry.insert(member.to_owned(), pairs.into());
    }
    Ok(())
}
