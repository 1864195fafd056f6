//! The settings the program knows: their types, and which of them an untrusted project may set.
//!
//! This table is the only place that decides either question.

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

/// What happens to a key of a project that is not trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Untrusted {
    /// It can do no harm.
    Allowed,
    /// Only the entries that name something inside the project.
    InsideProject,
    /// It could name an executable, a place to write or code to load.
    Ignored,
}

pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) untrusted: Untrusted,
}

const fn key(name: &'static str, kind: Kind, untrusted: Untrusted) -> Key {
    Key {
        name,
        kind,
        untrusted,
    }
}

use Kind::{Checked, Count, Level, Members, Sources, Switch, Text, TextList};
use Untrusted::{Allowed, Ignored, InsideProject};

/// Every known key. Unknown ones are kept for whoever reads them, unless the project is untrusted.
const KEYS: &[Key] = &[
    key("defaultProvider", Text, Allowed),
    key("defaultModel", Text, Allowed),
    key("defaultThinkingLevel", Level, Allowed),
    key(
        "thinkingBudgets",
        Members(&[
            ("minimal", Count),
            ("low", Count),
            ("medium", Count),
            ("high", Count),
        ]),
        Allowed,
    ),
    key("steeringMode", Text, Allowed),
    key("followUpMode", Text, Allowed),
    key("transport", Text, Ignored),
    key(
        "compaction",
        Members(&[
            ("enabled", Switch),
            ("reserveTokens", Count),
            ("keepRecentTokens", Count),
        ]),
        Allowed,
    ),
    key(
        "branchSummary",
        Members(&[("reserveTokens", Count), ("skipPrompt", Switch)]),
        Allowed,
    ),
    key(
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
        Allowed,
    ),
    key(
        "images",
        Members(&[("autoResize", Switch), ("blockImages", Switch)]),
        Allowed,
    ),
    key(
        "timeouts",
        Members(&[("connectMs", Count), ("idleMs", Count), ("totalMs", Count)]),
        Ignored,
    ),
    key("tools", Members(&[("timeoutSeconds", Count)]), Ignored),
    // Only what forbids more is taken from a project.
    key("approvals", Checked, Allowed),
    key("steeringDelivery", Text, Allowed),
    key("shellPath", Text, Ignored),
    key("shellCommandPrefix", Text, Ignored),
    key("enabledModels", TextList, Allowed),
    key("packages", Sources, Ignored),
    key("extensions", TextList, Ignored),
    key(
        "extensionLimits",
        Members(&[
            ("busySeconds", Count),
            ("handlerSeconds", Count),
            ("memoryMb", Count),
        ]),
        Ignored,
    ),
    key("skills", TextList, InsideProject),
    key("prompts", TextList, InsideProject),
    key("themes", TextList, Ignored),
    key("enableSkillCommands", Switch, Allowed),
    key("sessionDir", Text, Ignored),
    key("theme", Text, Allowed),
    key("hideThinkingBlock", Switch, Allowed),
    key("quietStartup", Switch, Allowed),
    key("collapseChangelog", Switch, Allowed),
    key("doubleEscapeAction", Text, Allowed),
    key("treeFilterMode", Text, Allowed),
    key("editorPaddingX", Count, Allowed),
    key("autocompleteMaxVisible", Count, Allowed),
    key("showHardwareCursor", Switch, Allowed),
    key(
        "terminal",
        Members(&[("showImages", Switch), ("clearOnShrink", Switch)]),
        Allowed,
    ),
    key("markdown", Members(&[("codeBlockIndent", Text)]), Allowed),
    key("lastChangelogVersion", Text, Allowed),
];

/// The entry for a top-level key.
pub(crate) fn find(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name)
}

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
    let kinds = |name: &str| find(name).map(|key| key.kind);
    drop_from(layer, "", &kinds, file, notices);
}

fn drop_from(
    object: &mut Map<String, Value>,
    prefix: &str,
    kind_of: &dyn Fn(&str) -> Option<Kind>,
    file: &Path,
    notices: &mut Vec<Notice>,
) {
    object.retain(|name, value| {
        let Some(kind) = kind_of(name) else {
            return true;
        };
        if !kind.fits(value) {
            let message = format!("{prefix}{name} must be {}; it is ignored", kind.noun());
            notices.push(Notice::about(file, "wrong_type", message));
            return false;
        }
        if let (Members(members), Value::Object(inner)) = (kind, value) {
            let prefix = format!("{prefix}{name}.");
            drop_from(inner, &prefix, &|name| member(members, name), file, notices);
        }
        true
    });
}

/// The kind of a member of an object.
pub(crate) fn member(members: &[(&str, Kind)], name: &str) -> Option<Kind> {
    members
        .iter()
        .find(|(known, _)| *known == name)
        .map(|&(_, kind)| kind)
}
