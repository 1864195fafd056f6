//! Listed servers as text and as JSON.

use std::fmt::Write;

use pinion_text::{harmless_line, shorten};
use serde_json::{Value, json};

use crate::{ListedServer, McpConfig};

/// Characters of a description.
const MAX_DESCRIPTION: usize = 80;

impl ListedServer {
    /// Returns `disabled`, `connected` or `failed`.
    fn state(&self) -> &'static str {
        match (&self.tools, self.enabled) {
            (_, false) => "disabled",
            (Ok(_), true) => "connected",
            (Err(_), true) => "failed",
        }
    }

    fn write(&self, text: &mut String) {
        let exposure = self.exposure.name();
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{}  {}  {}  {exposure}  {}",
            self.name,
            self.state(),
            self.transport,
            self.file.display()
        );
        match &self.tools {
            Ok(tools) => {
                for tool in tools {
                    let mut line = format!("  {}", tool.name);
                    if tool.exposure != self.exposure {
                        line.push_str(&format!(" ({})", tool.exposure.name()));
                    }
                    let about = tool.description.lines().next().unwrap_or_default();
                    if !about.is_empty() {
                        line.push_str(&format!("  {}", shorten(about, MAX_DESCRIPTION)));
                    }
                    let _ = writeln!(text, "{}", harmless_line(&line));
                }
            }
            Err(reason) => {
                let _ = writeln!(text, "  {}", harmless_line(reason));
                for line in &self.printed {
                    let _ = writeln!(text, "  | {}", harmless_line(line));
                }
            }
        }
    }

    fn json(&self) -> Value {
        let mut shown = json!({
            "name": self.name,
            "state": self.state(),
            "transport": self.transport,
            "exposure": self.exposure.name(),
            "file": self.file,
        });
        match &self.tools {
            Ok(tools) => {
                let tools = tools.iter().map(|tool| {
                    json!({
                        "name": tool.name,
                        "description": tool.description,
                        "exposure": tool.exposure.name(),
                    })
                });
                shown["tools"] = tools.collect();
            }
            Err(reason) => {
                shown["error"] = reason.as_str().into();
                shown["stderr"] = json!(self.printed);
            }
        }
        shown
    }
}

/// Formats the servers and the problems of their files as lines for people.
pub fn list_text(servers: &[ListedServer], config: &McpConfig) -> String {
    let mut text = String::new();
    for server in servers {
        server.write(&mut text);
    }
    for problem in &config.problems {
        let _ = writeln!(text, "problem  {problem}");
    }
    text
}

/// Formats the servers and the problems of their files as JSON.
pub fn list_json(servers: &[ListedServer], config: &McpConfig) -> Value {
    let servers = servers.iter().map(ListedServer::json);
    let problems = config.problems.iter().map(ToString::to_string);
    json!({
        "servers": servers.collect::<Vec<_>>(),
        "problems": problems.collect::<Vec<_>>(),
    })
}
