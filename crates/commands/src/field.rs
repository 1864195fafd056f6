//! The flags and arguments of a command.

use pinion_templates::Value;
use serde_json::json;

/// The type of a field: the form on a command line, and the value in templates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FieldType {
    /// Text.
    String,
    /// Text that is never printed.
    Secret,
    /// A whole number.
    Int,
    /// A number.
    Float,
    /// True or false.
    Bool,
    /// A date, absolute or relative.
    Date,
    /// One of the choices.
    Choice,
    /// Several of the choices.
    ChoiceList,
    /// Texts.
    StringList,
    /// Whole numbers.
    IntList,
    /// Numbers.
    FloatList,
    /// Pairs of names and texts.
    KeyValue,
    /// The text of a file.
    StringFromFile,
    /// The texts of files, one after the other.
    StringFromFiles,
    /// The lines of a file, or the list in it.
    StringListFromFile,
    /// The lines or lists of several files.
    StringListFromFiles,
    /// The object in a file.
    ObjectFromFile,
    /// The list of objects in a file.
    ObjectListFromFile,
    /// The lists of objects in several files.
    ObjectListFromFiles,
    /// A file with its metadata.
    File,
    /// Several files with their metadata.
    FileList,
}

/// The name of each type in files, its placeholder on help pages, and its description.
const NAMES: &[(FieldType, &str, &str, &str)] = &[
    (FieldType::String, "string", "TEXT", "text"),
    (FieldType::Secret, "secret", "TEXT", "text"),
    (FieldType::Int, "int", "N", "a whole number"),
    (FieldType::Float, "float", "X", "a number"),
    (FieldType::Bool, "bool", "", "true or false"),
    (
        FieldType::Date,
        "date",
        "DATE",
        "a date such as 2026-01-31, yesterday or \"3 days ago\"",
    ),
    (FieldType::Choice, "choice", "CHOICE", "one of its choices"),
    (
        FieldType::ChoiceList,
        "choiceList",
        "CHOICE,…",
        "some of its choices",
    ),
    (
        FieldType::StringList,
        "stringList",
        "TEXT,…",
        "texts, repeated or with commas between them",
    ),
    (
        FieldType::IntList,
        "intList",
        "N,…",
        "whole numbers, repeated or with commas between them",
    ),
    (
        FieldType::FloatList,
        "floatList",
        "X,…",
        "numbers, repeated or with commas between them",
    ),
    (
        FieldType::KeyValue,
        "keyValue",
        "KEY=VALUE,…",
        "pairs such as key=value or key:value, or @file",
    ),
    (
        FieldType::StringFromFile,
        "stringFromFile",
        "FILE",
        "a file, - for standard input",
    ),
    (
        FieldType::StringFromFiles,
        "stringFromFiles",
        "FILE,…",
        "files, - for standard input",
    ),
    (
        FieldType::StringListFromFile,
        "stringListFromFile",
        "FILE",
        "a file of lines, or a JSON, YAML or CSV file",
    ),
    (
        FieldType::StringListFromFiles,
        "stringListFromFiles",
        "FILE,…",
        "files of lines, or JSON, YAML or CSV files",
    ),
    (
        FieldType::ObjectFromFile,
        "objectFromFile",
        "FILE",
        "a JSON, YAML or CSV file with one object",
    ),
    (
        FieldType::ObjectListFromFile,
        "objectListFromFile",
        "FILE",
        "a JSON, YAML or CSV file with a list of objects",
    ),
    (
        FieldType::ObjectListFromFiles,
        "objectListFromFiles",
        "FILE,…",
        "JSON, YAML or CSV files with lists of objects",
    ),
    (
        FieldType::File,
        "file",
        "FILE",
        "a file, - for standard input",
    ),
    (
        FieldType::FileList,
        "fileList",
        "FILE,…",
        "files, - for standard input",
    ),
];

impl FieldType {
    /// Returns the type with this name.
    pub fn named(name: &str) -> Option<Self> {
        NAMES.iter().find(|row| row.1 == name).map(|row| row.0)
    }

    /// Returns all names, as files write them.
    pub fn names() -> impl Iterator<Item = &'static str> {
        NAMES.iter().map(|row| row.1)
    }

    fn row(self) -> &'static (FieldType, &'static str, &'static str, &'static str) {
        // Every type has a row; a test checks the table.
        NAMES.iter().find(|row| row.0 == self).unwrap_or(&NAMES[0])
    }

    /// Returns the name, as files write it.
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// Returns the placeholder of a value on a help page.
    pub fn placeholder(self) -> &'static str {
        self.row().2
    }

    /// Returns a description of valid values.
    pub fn expected(self) -> &'static str {
        self.row().3
    }

    /// Reports whether it takes several values.
    pub fn is_list(self) -> bool {
        self.placeholder().ends_with('…')
    }

    /// Reports whether its values are file names.
    pub fn reads_files(self) -> bool {
        self.placeholder().starts_with("FILE")
    }

    /// Reports whether an option of this type needs no value.
    pub fn is_flag(self) -> bool {
        self == Self::Bool
    }
}

/// A flag or an argument of a command.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// The name in templates.
    pub name: String,
    /// The letter after a single dash.
    pub short: Option<char>,
    /// The type of its value.
    pub kind: FieldType,
    /// The line on the help page.
    pub help: String,
    /// The default, as in the file.
    pub default: Option<serde_json::Value>,
    /// The permitted values.
    pub choices: Vec<String>,
    pub required: bool,
}

impl Field {
    /// Returns the name of the option, in which `_` becomes `-`.
    pub fn option(&self) -> String {
        self.name.replace('_', "-")
    }

    /// Returns the environment variable that sets the field.
    pub fn variable(&self) -> String {
        variable(&self.name)
    }

    /// Returns the field's part of a JSON schema.
    pub fn schema(&self) -> serde_json::Value {
        let choices = || {
            let mut text = json!({ "type": "string" });
            if !self.choices.is_empty() {
                text["enum"] = json!(self.choices);
            }
            text
        };
        let mut schema = match self.kind {
            FieldType::Int => json!({ "type": "integer" }),
            FieldType::Float => json!({ "type": "number" }),
            FieldType::Bool => json!({ "type": "boolean" }),
            FieldType::Date => json!({ "type": "string", "format": "date-time" }),
            FieldType::Secret => json!({ "type": "string", "format": "password" }),
            FieldType::Choice => choices(),
            FieldType::ChoiceList => json!({ "type": "array", "items": choices() }),
            FieldType::IntList => json!({ "type": "array", "items": { "type": "integer" } }),
            FieldType::FloatList => json!({ "type": "array", "items": { "type": "number" } }),
            FieldType::KeyValue => {
                json!({ "type": "object", "additionalProperties": { "type": "string" } })
            }
            FieldType::StringList
            | FieldType::StringFromFiles
            | FieldType::StringListFromFiles
            | FieldType::ObjectListFromFiles
            | FieldType::FileList => json!({ "type": "array", "items": { "type": "string" } }),
            _ => json!({ "type": "string" }),
        };
        if self.kind.reads_files() {
            schema["x-file"] = json!(true);
        }
        if !self.help.is_empty() {
            schema["description"] = json!(self.help);
        }
        if let Some(default) = &self.default
            && self.kind != FieldType::Secret
        {
            schema["default"] = default.clone();
        }
        schema
    }

    /// Returns a value for display: secrets are masked.
    pub fn shown(&self, value: &Value) -> serde_json::Value {
        match self.kind {
            FieldType::Secret => json!("***"),
            _ => value.to_json(),
        }
    }
}

/// Returns the environment variable for a name.
pub(crate) fn variable(name: &str) -> String {
    format!("PINOCCHIO_{}", name.replace('-', "_").to_uppercase())
}
