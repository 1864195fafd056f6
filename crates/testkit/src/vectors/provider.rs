//! Requests to the model, reduced to the recorded parts.

use serde_json::{Value, json};

use super::names::Names;
use super::project::shorten;

/// The requests as the recording would tell them. `asked` are its own lines: they say which texts to look for in the
/// system prompt; `plain` is the system prompt without extensions.
pub(super) fn told(
    requests: &[Value],
    asked: &[Value],
    plain: Option<&str>,
    names: &mut Names,
) -> Vec<Value> {
    let mut tools_before: Option<Vec<String>> = None;
    let mut out = Vec::new();
    for (index, request) in requests.iter().enumerate() {
        let body = &request["body"];
        let mut line = json!({"dir": "provider", "n": index + 1, "model": body["model"]});
        let tools = tool_names(body);
        if tools_before.as_ref() != Some(&tools) {
            line["tools"] = json!(tools);
            tools_before = Some(tools);
        }
        let messages: Vec<&Value> = body["messages"].as_array().into_iter().flatten().collect();
        let (system, talk): (Vec<&Value>, Vec<&Value>) = messages
            .into_iter()
            .partition(|m| m["role"] == "system" || m["role"] == "developer");
        let system: String = system.iter().map(|m| text(&m["content"])).collect();
        let letters: String = talk
            .iter()
            .filter_map(|m| m["role"].as_str()?.chars().next())
            .collect();
        line["roles"] = json!(letters);
        let since = talk
            .iter()
            .rposition(|m| m["role"] == "assistant")
            .map_or(0, |at| at + 1);
        let since: Vec<Value> = talk[since..]
            .iter()
            .map(|m| json!({"role": m["role"], "text": names.named_text(&text(&m["content"]))}))
            .collect();
        line["since_last_assistant"] = shorten(&json!(since));
        if let Some(temperature) = body.get("temperature") {
            line["temperature"] = temperature.clone();
        }
        let recorded = asked.get(index).unwrap_or(&Value::Null);
        if let Some(pairs) = recorded["system_contains"].as_array() {
            let found = |pair: &Value| {
                let wanted = pair[0].as_str().unwrap_or_default();
                json!([wanted, system.contains(wanted)])
            };
            line["system_contains"] = pairs.iter().map(found).collect();
        }
        if recorded.get("system_appended").is_some() {
            let appended = plain
                .and_then(|plain| system.strip_prefix(plain))
                .unwrap_or(&system);
            line["system_appended"] = shorten(&json!(names.named_text(appended)));
        }
        out.push(line);
    }
    out
}

/// The system prompt of a request.
pub(super) fn system_prompt(request: &Value) -> String {
    let messages = request["body"]["messages"].as_array().into_iter().flatten();
    messages
        .filter(|m| m["role"] == "system" || m["role"] == "developer")
        .map(|m| text(&m["content"]))
        .collect()
}

fn tool_names(body: &Value) -> Vec<String> {
    let tools = body["tools"].as_array().into_iter().flatten();
    let name = |tool: &Value| {
        tool["function"]["name"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    tools.map(name).collect()
}

/// A content that is a string, or the texts of its parts.
fn text(content: &Value) -> String {
    match content.as_str() {
        Some(text) => text.to_owned(),
        None => {
            let parts = content.as_array().into_iter().flatten();
            let texts: Vec<&str> = parts.filter_map(|part| part["text"].as_str()).collect();
            texts.join("\n")
        }
    }
}
