//! `clip show`: prints the manifest of a clip.

use std::fmt::Write;
use std::process::ExitCode;

use pinion_proto::Message;
use pinion_proto::hub::{ClipManifest, CommandInfo, GetManifestRequest, GetManifestResponse};
use pinion_text::harmless_line;

use super::schema::fields;
use crate::commands::out;
use crate::failure::Failure;
use crate::hub::caller::{self, Caller, Shape};
use crate::hub::show::strong;
use crate::verb::{Line, Verb};
use pinion_cli::tables;

pub(super) const VERB: Verb = Verb::new("pinion clip", &tables::clip::SHOW, run);

/// `clip show` with text output unless `--json` is given, even if stdout is not a terminal.
pub(super) const INFO: Verb = Verb::new("pinix hub", &tables::pinix::INFO, info);

/// Fetches the manifest of a clip.
pub(crate) async fn manifest(caller: &Caller, alias: &str) -> Result<ClipManifest, Failure> {
    let request = GetManifestRequest {
        clip_name: alias.to_owned().into(),
    };
    let answer: GetManifestResponse = caller.ask("GetClipManifest", &request).await?;
    Ok(answer.manifest.unwrap_or_default())
}

fn run(line: &Line) -> Result<ExitCode, Failure> {
    let [alias] = line.exactly()?;
    let caller = Caller::of(line)?;
    let manifest = caller::wait(manifest(&caller, alias))?;
    match Shape::of(line) {
        Shape::Json => out(&format!("{}\n", manifest.to_json())),
        Shape::Table => out(&described(&manifest)),
    }
}

fn info(line: &Line) -> Result<ExitCode, Failure> {
    let [alias] = line.exactly()?;
    let caller = Caller::of(line)?;
    let manifest = caller::wait(manifest(&caller, alias))?;
    match line.has("--json") {
        true => out(&format!("{}\n", manifest.to_json())),
        false => out(&described(&manifest)),
    }
}

/// Formats a manifest as text.
pub(crate) fn described(manifest: &ClipManifest) -> String {
    let heading = format!(
        "{}  {} {}",
        harmless_line(&manifest.name),
        harmless_line(&manifest.package),
        harmless_line(&manifest.version)
    );
    let mut text = strong(heading.trim_end()) + "\n";
    if !manifest.description.is_empty() {
        text += &format!("{}\n", harmless_line(&manifest.description));
    }
    if !manifest.commands.is_empty() {
        text += "\nCommands:\n";
    }
    for command in &manifest.commands {
        describe(&mut text, command);
    }
    if !manifest.dependency_slots.is_empty() {
        text += "\nSlots:\n";
    }
    for (slot, wanted) in &manifest.dependency_slots {
        let wanted = format!(
            "{} {}",
            harmless_line(&wanted.package),
            harmless_line(&wanted.version)
        );
        let _ = writeln!(text, "  {:12} {}", harmless_line(slot), wanted.trim_end());
    }
    if !manifest.patterns.is_empty() {
        text += "\nHow it is used:\n";
    }
    for pattern in &manifest.patterns {
        let _ = writeln!(text, "  {}", harmless_line(pattern));
    }
    text
}

fn describe(text: &mut String, command: &CommandInfo) {
    let line = format!(
        "  {:12} {}",
        harmless_line(&command.name),
        harmless_line(&command.description)
    );
    *text += &(line.trim_end().to_owned() + "\n");
    for field in fields(&command.input) {
        let must = if field.required { ", required" } else { "" };
        let line = format!(
            "    --{} {}{must}  {}",
            harmless_line(&field.name),
            harmless_line(&field.kind),
            harmless_line(&field.description)
        );
        *text += &(line.trim_end().to_owned() + "\n");
    }
}
