//! The table of known settings and their types.

use std::path::Path;

use pinion_message::ThinkingLevel;
use serde_json::{Map, Value};

use crate::Notice;

/// The required type of a value.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ValueType {
    Switch,
    /// A number that is not negative.
    Count,
    Text,
    Level,
    TextList,
    /// Strings or objects.
    Sources,
    Members(&'static [(&'static str, ValueType)]),
    /// An object that its reader checks as a whole: a part of it alone could have another effect.
    Checked,
}

use ValueType::{Checked, Count, Level, Members, Sources, Switch, Text, TextList};

/// Every known key. Unknown ones stay in the settings, because extensions may read them.
const KEYS: &[(&str, ValueType)] = &[
    ("defaultProvider", Text),
    ("defaultModel", Text),
    ("defaultThinkingLevel", Level),
    ("deviceId", Text),
    (
        "thinkingBudgets",
        Members(&[
            ("minimal", Count),
            ("low", Count),
            ("medium", Count),
            ("high", Count),
        ]),
    ),
    ("steeringMode", Text),
    ("followUpMode", Text),
    ("transport", Text),
    (
        "compaction",
        Members(&[
            ("enabled", Switch),
            ("reserveTokens", Count),
            ("keepRecentTokens", Count),
        ]),
    ),
    ("defaultTools", TextList),
    (
        "codemode",
        Members(&[("mode", Text), ("inlineBudget", Count)]),
    ),
    (
        "branchSummary",
        Members(&[("reserveTokens", Count), ("skipPrompt", Switch)]),
    ),
    (
        "retry",
        Members(&[
            ("enabled", Switch),
            ("maxRetries", Count),
            ("baseDelayMs", Count),
            ("maxDelayMs", Count),
            (
                "provider",
                Members(&[
                    ("timeoutMs", Count),
                    ("maxRetries", Count),
                    ("maxRetryDelayMs", Count),
                ]),
            ),
        ]),
    ),
    (
        "images",
        Members(&[("autoResize", Switch), ("blockImages", Switch)]),
    ),
    (
        "timeouts",
        Members(&[("connectMs", Count), ("idleMs", Count), ("totalMs", Count)]),
    ),
    ("tools", Members(&[("timeoutSeconds", Count)])),
    // From a project only stricter rules are used.
    ("approvals", Checked),
    // A project can only narrow it.
    ("sandbox", Checked),
    ("steeringDelivery", Text),
    ("shellPath", Text),
    ("shellCommandPrefix", Text),
    ("enabledModels", TextList),
    ("packages", Sources),
    ("extensions", TextList),
    (
        "extensionLimits",
        Members(&[
            ("busySeconds", Count),
            ("handlerSeconds", Count),
            ("memoryMb", Count),
        ]),
    ),
    ("skills", TextList),
    ("prompts", TextList),
    ("themes", TextList),
    ("enableSkillCommands", Switch),
    ("sessionDir", Text),
    ("theme", Text),
    ("hideThinkingBlock", Switch),
    ("quietStartup", Switch),
    ("defaultProjectTrust", Text),
    ("collapseChangelog", Switch),
    ("doubleEscapeAction", Text),
    ("treeFilterMode", Text),
    ("editorPaddingX", Count),
    ("autocompleteMaxVisible", Count),
    ("showHardwareCursor", Switch),
    (
        "terminal",
        Members(&[("showImages", Switch), ("clearOnShrink", Switch)]),
    ),
    ("markdown", Members(&[("codeBlockIndent", Text)])),
    ("lastChangelogVersion", Text),
];

impl ValueType {
    fn noun(self) -> &'static str {
        match self {
            Switch => "true or false",
            Count => "a number that is not negative",
            Text => "a string",
            Level => "off, minimal, low, medium, high, xhigh or max",
            TextList => "a list of strings",
            Sources => "a list of strings or objects",
            Members(_) | Checked => "an object",
        }
    }

    /// `null` is valid everywhere: it means that the key is absent.
    fn accepts(self, value: &Value) -> bool {
        match (self, value) {
            (_, Value::Null) | (Checked, _) => true,
            (Switch, value) => value.is_boolean(),
            (Count, value) => as_count(value).is_some(),
            (Text, value) => value.is_string(),
            (Level, value) => value
                .as_str()
                .is_some_and(|text| text.parse::<ThinkingLevel>().is_ok()),
            (TextList, Value::Array(items)) => items.iter().all(Value::is_string),
            (Sources, Value::Array(items)) => items
                .iter()
                .all(|item| item.is_string() || item.is_object()),
            (Members(_), value) => value.is_object(),
            (TextList | Sources, _) => false,
        }
    }
}

/// A number that is not negative. Fractions are cut off: some programs write `16384.0`.
pub(crate) fn as_count(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| {
        let number = value.as_f64()?;
        (number.is_finite() && number >= 0.0).then_some(number as u64)
    })
}

/// Removes every known key of the wrong type, with a notice that names it.
pub(crate) fn remove_invalid(
    layer: &mut Map<String, Value>,
    file: &Path,
    notices: &mut Vec<Notice>,
) {
    remove_invalid_in(layer, "", KEYS, file, notices);
}

fn remove_invalid_in(
    object: &mut Map<String, Value>,
    prefix: &str,
    known: &[(&str, ValueType)],
    file: &Path,
    notices: &mut Vec<Notice>,
) {
    object.retain(|name, value| {
        let Some(value_type) = type_of(name, known) else {
            return true;
        };
        if !value_type.accepts(value) {
            let message = format!(
                "{prefix}{name} must be {}; it is ignored",
                value_type.noun()
            );
            notices.push(Notice::about(file, "wrong_type", message));
            return false;
        }
        if let (Members(members), Value::Object(inner)) = (value_type, value) {
            let prefix = format!("{prefix}{name}.");
            remove_invalid_in(inner, &prefix, members, file, notices);
        }
        true
    });
}

fn type_of(name: &str, known: &[(&str, ValueType)]) -> Option<ValueType> {
    let entry = known.iter().find(|(key, _)| *key == name);
    entry.map(|&(_, value_type)| value_type)
}
