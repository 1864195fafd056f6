//! The description of `codemode` for the model.
//!
//! It lists the tools that scripts can call, except deferred ones: it stays the same while MCP servers connect.

use std::sync::Arc;

use pinion_tools::{Exposure, Tool};

use crate::declaration::described;

/// Characters of an estimated token.
const CHARS_PER_TOKEN: usize = 4;

const INTRODUCTION: &str = "\
Runs a JavaScript script that calls other tools. The model sees only what the script prints or returns, so a script can \
run calls in parallel, chain them, and filter large results.

The script is the body of an async function: top-level await and return work. It has no files, network, timers or Node \
APIs; it reaches the world only through tools.

- tools.<name>(args): call a tool. Its promise rejects if the call fails; use Promise.allSettled for several calls.
- text(value): print a value. image(value): show an image block or a base64 data: URL. console.log(...): print a log line.
- return value: print the value. exit(): end the script.
- store(key, value), load(key): keep small JSON values for later scripts of this session.
- ALL_TOOLS: every callable tool as { name, description }, also those that are not listed below.
- await searchTools(query, { limit, namespace }): find tools by words. await describeTool(name): the declaration of a tool. \
await describeNamespace(name): the tools and instructions of an MCP server.
- A first line `// @options: {\"max_output_tokens\": 2000, \"timeout_ms\": 60000}` sets limits.";

/// Returns the description when `tools` are callable.
pub(crate) fn describe(tools: &[Arc<dyn Tool>], inline_budget: usize) -> String {
    let mut text = INTRODUCTION.to_owned();
    let mut left = inline_budget.saturating_mul(CHARS_PER_TOKEN);
    let listed = tools
        .iter()
        .filter(|tool| tool.exposure() != Exposure::Deferred);
    let mut is_first = true;
    for tool in listed {
        let section = format!("\n\n### {}\n{}", tool.spec().name, described(&**tool));
        let Some(rest) = left.checked_sub(section.len()) else {
            continue;
        };
        left = rest;
        if is_first {
            text.push_str("\n\nTools:");
            is_first = false;
        }
        text.push_str(&section);
    }
    text
}
