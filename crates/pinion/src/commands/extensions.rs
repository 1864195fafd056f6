//! `extensions`: which extensions a run here would load, and where they come from.

use std::process::ExitCode;

use pinion_config::{
    Dirs, Discovery, ExtensionEntry, ExtensionFlags, Settings, Trust, TrustFlag, find_extensions,
};
use serde_json::json;

use super::out;
use crate::failure::Failure;
use crate::help::Topic;

pub(super) fn run(words: &[String]) -> Result<ExitCode, Failure> {
    let Some((verb, rest)) = words.split_first() else {
        return super::help(Topic::Extensions);
    };
    if verb != "list" {
        return Err(Failure::usage("Error: see `pinion extensions --help`."));
    }
    let mut flags = ExtensionFlags::default();
    let mut trust = TrustFlag::Unset;
    let mut shape = Shape::Table;
    let mut rest = rest.iter();
    while let Some(word) = rest.next() {
        match word.as_str() {
            "--json" => shape = Shape::Json,
            "--approve" => trust = TrustFlag::Approve,
            "--no-approve" => trust = TrustFlag::Refuse,
            "-ne" | "--no-extensions" => flags.discovery = Discovery::Off,
            "-e" | "--extension" => match rest.next() {
                Some(source) => flags.extensions.push(source.clone()),
                None => {
                    return Err(Failure::usage(format!(
                        "Error: {word} needs a value after it."
                    )));
                }
            },
            _ => return Err(Failure::usage("Error: see `pinion extensions --help`.")),
        }
    }
    list(&flags, trust, &shape)
}

enum Shape {
    Table,
    Json,
}

fn list(flags: &ExtensionFlags, trust: TrustFlag, shape: &Shape) -> Result<ExitCode, Failure> {
    let dirs = Dirs::from_env()?;
    let (trust, mut notices) = Trust::decide(&dirs, trust);
    let (settings, odd) = Settings::load(&dirs, trust);
    notices.extend(odd);
    let found = find_extensions(&dirs, &settings, flags, trust);
    notices.extend(found.notices);
    for notice in notices {
        eprintln!("Warning: {notice}");
    }
    if found.entries.is_empty() && matches!(shape, Shape::Table) {
        eprintln!("No extensions. See `pinion extensions --help` for where they are looked for.");
    }
    let line = match shape {
        Shape::Table => table_line,
        Shape::Json => json_line,
    };
    out(&found.entries.iter().map(line).collect::<String>())
}

fn table_line(entry: &ExtensionEntry) -> String {
    let info = &entry.source_info;
    format!(
        "{:9} {}  ({})\n",
        info.scope,
        entry.path.display(),
        info.source
    )
}

fn json_line(entry: &ExtensionEntry) -> String {
    let line = pinion_jsonl::json::to_string(&json!({
        "path": entry.path.display().to_string(),
        "sourceInfo": entry.source_info,
    }));
    line + "\n"
}
