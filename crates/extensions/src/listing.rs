//! Extensions as `pinion extensions list` shows them.

use pinion_config::ExtensionEntry;
use serde_json::json;

use crate::ExtensionReport;

/// The report of an extension, or the reason why it was not loaded; `None` if it was not to be loaded.
pub type ListedOutcome = Option<Result<ExtensionReport, String>>;

/// Formats an extension as a paragraph for people.
pub fn listed_text(entry: &ExtensionEntry, outcome: &ListedOutcome) -> String {
    let info = &entry.source_info;
    let registered = match outcome {
        None => String::new(),
        Some(Err(error)) => format!("  error: {error}\n"),
        Some(Ok(report)) => report.text(),
    };
    format!(
        "{}\n  from: {} ({})\n{registered}",
        entry.path.display(),
        info.source,
        info.scope
    )
}

/// Formats an extension as a line of JSON.
pub fn listed_json_line(entry: &ExtensionEntry, outcome: &ListedOutcome) -> String {
    let path = entry.path.display().to_string();
    let mut value = match outcome {
        Some(Ok(report)) => json!(report),
        None => json!({"path": path}),
        Some(Err(error)) => json!({"path": path, "error": error}),
    };
    value["sourceInfo"] = json!(entry.source_info);
    pinion_jsonl::json::to_string(&value) + "\n"
}
