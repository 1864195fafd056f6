//! The table of known settings and their types.

use std::path::Path;

use pinion_message::ThinkingLevel;
use serde_json::{Map, Value};

use crate::Notice;

/// What a value must be.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    Switch,
    /// A number that is not negative.
    Count,
    Text,
    Level,
    TextList,
    /// Strings or objects.
    Sources,
    Members(&'static [(&'static str, Kind)]),
    /// An object that its reader checks: leaving out what is wrong with it would be no better.
    Checked,
}

use Kind::{Checked, Count, Level, Members, Sources, Switch, Text, TextList};

/// Every known key. Unknown ones stay in the settings, because extensions may read them.
const KEYS: &[(&str, Kind)] = &[
    ("defaultProvider", Text),
    ("defaultModel", Text),
    ("defaultThinkingLevel", Level),
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
    // Only what forbids more is taken from a project.
    ("approvals", Checked),
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

impl Kind {
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

    /// `null` fits everywhere: it means "as if it were not there".
    fn fits(self, value: &Value) -> bool {
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

/// A number that is not negative; fractions are cut off, as `16384.0` is a number like any other.
pub(crate) fn as_count(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| {
        let number = value.as_f64()?;
        (number.is_finite() && number >= 0.0).then_some(number as u64)
    })
}

/// Takes out every known key of the wrong type, with a notice that names it.
pub(crate) fn drop_misfits(layer: &mut Map<String, Value>, file: &Path, notices: &mut Vec<Notice>) {
    drop_from(layer, "", KEYS, file, notices);
}

fn drop_from(
    object: &mut Map<String, Value>,
    prefix: &str,
    known: &[(&str, Kind)],
    file: &Path,
    notices: &mut Vec<Notice>,
) {
    object.retain(|name, value| {
        let Some(kind) = kind_of(name, known) else {
            return true;
        };
        if !kind.fits(value) {
            let message = format!("{prefix}{name} must be {}; it is ignored", kind.noun());
            notices.push(Notice::about(file, "wrong_type", message));
            return false;
        }
        if let (Members(members), Value::Object(inner)) = (kind, value) {
            let prefix = format!("{prefix}{name}.");
            drop_from(inner, &prefix, members, file, notices);
        }
        true
    });
}

fn kind_of(name: &str, known: &[(&str, Kind)]) -> Option<Kind> {
    let entry = known.iter().find(|(key, _)| *key == name);
    entry.map(|&(_, kind)| kind)
}
