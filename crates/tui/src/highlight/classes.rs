//! Classes of syntax elements and their styles.

use std::borrow::Cow;
use std::collections::HashMap;

use ratatui::style::Style;
use syntect::parsing::Scope;

use crate::Theme;

/// The class of a piece of code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    Plain,
    Keyword,
    String,
    Number,
    Comment,
    Function,
    Kind,
    Added,
    Removed,
}

impl Class {
    pub fn style(self, theme: &Theme) -> Style {
        match self {
            Self::Plain => theme.text,
            Self::Keyword => theme.keyword,
            Self::String => theme.string,
            Self::Number => theme.number,
            Self::Comment => theme.comment,
            Self::Function => theme.function,
            Self::Kind => theme.kind,
            Self::Added => theme.added,
            Self::Removed => theme.removed,
        }
    }
}

/// Prefixes of scopes and their classes, the more specific ones first.
const SCOPES: &[(&str, Class)] = &[
    ("comment", Class::Comment),
    ("meta.interpolation", Class::Plain),
    ("meta.template.expression", Class::Plain),
    ("string", Class::String),
    ("constant.character", Class::String),
    ("constant", Class::Number),
    ("keyword.operator.word", Class::Keyword),
    ("keyword.operator.logical.python", Class::Keyword),
    ("keyword.operator", Class::Plain),
    ("keyword", Class::Keyword),
    ("storage", Class::Keyword),
    ("variable.language", Class::Keyword),
    ("variable.function", Class::Function),
    ("entity.name.function", Class::Function),
    ("entity.name.tag", Class::Keyword),
    ("entity.name.section", Class::Function),
    ("entity", Class::Kind),
    ("support.function", Class::Function),
    ("support.macro", Class::Function),
    ("support.constant", Class::Number),
    ("support", Class::Kind),
    ("markup.inserted", Class::Added),
    ("markup.deleted", Class::Removed),
    ("markup.heading", Class::Function),
    ("markup.raw", Class::String),
    ("meta.diff.range", Class::Kind),
    ("meta.diff.header", Class::Kind),
    ("source", Class::Plain),
];

/// Finds the class of a piece of code from its scopes.
pub(super) struct Classes {
    known: Vec<(Scope, Class)>,
    /// The scope of object keys, which are strings too but have a class of their own.
    key: Option<Scope>,
    seen: HashMap<Scope, Option<Class>>,
}

impl Classes {
    pub fn new() -> Self {
        let scope = |&(name, class): &(&str, Class)| Some((Scope::new(name).ok()?, class));
        Self {
            known: SCOPES.iter().filter_map(scope).collect(),
            key: Scope::new("meta.mapping.key").ok(),
            seen: HashMap::new(),
        }
    }

    pub fn of(&mut self, scopes: &[Scope]) -> Class {
        for (depth, &scope) in scopes.iter().enumerate().rev() {
            match self.of_one(scope) {
                Some(Class::String) if self.in_key(&scopes[..depth]) => return Class::Kind,
                Some(class) => return class,
                None => {}
            }
        }
        Class::Plain
    }

    fn of_one(&mut self, scope: Scope) -> Option<Class> {
        let known = &self.known;
        *self.seen.entry(scope).or_insert_with(|| {
            let mut known = known.iter();
            known
                .find(|(beginning, _)| beginning.is_prefix_of(scope))
                .map(|&(_, class)| class)
        })
    }

    fn in_key(&self, outer: &[Scope]) -> bool {
        self.key
            .is_some_and(|key| outer.iter().any(|&scope| key.is_prefix_of(scope)))
    }
}

/// Returns the name to look up a syntax by. `language` may be a name, an extension or a path;
/// `None` if there is nothing to colour.
pub(super) fn syntax_name(language: &str) -> Option<Cow<'static, str>> {
    let name = language.rsplit(['/', '\\']).next().unwrap_or_default();
    let name = match name.rsplit_once('.') {
        Some((_, extension)) if !extension.is_empty() => extension,
        _ => name,
    };
    let name = name.to_ascii_lowercase();
    let usual = match name.as_str() {
        "" | "text" | "txt" | "plain" | "plaintext" | "output" | "log" | "none" => return None,
        "shell" | "console" | "shell-session" | "sh-session" | "terminal" | "zsh" | "ksh" => "bash",
        "golang" => "go",
        "c++" | "cxx" => "cpp",
        "csharp" | "c#" => "cs",
        "fsharp" | "f#" => "fs",
        "jsonc" | "json5" | "jsonl" | "ndjson" => "json",
        "patch" | "udiff" => "diff",
        "mjs" | "cjs" | "jsx" | "node" => "js",
        "mts" | "cts" => "ts",
        "python3" | "py3" | "pyi" => "python",
        "make" | "mk" => "makefile",
        "docker" | "containerfile" => "dockerfile",
        "hcl" => "tf",
        "pwsh" => "powershell",
        "objc" | "objectivec" => "objective-c",
        "protobuf" => "proto",
        "viml" | "vimscript" => "vim",
        "assembly" => "asm",
        _ => return Some(Cow::Owned(name)),
    };
    Some(Cow::Borrowed(usual))
}
