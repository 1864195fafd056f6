//! `clip show`: prints the manifest of a clip.

use std::fmt::Write;
use std::process::ExitCode;

use pinion_clip::manifest::input_fields;
use pinion_proto::Message;
use pinion_proto::hub::{ClipManifest, CommandInfo};

use crate::commands::out;
use crate::failure::Failure;
use crate::hub::caller::{self, Caller, print};
use crate::hub::show::strong;
use crate::verb::{Line, Verb};
use pinion_cli::tables;
use pinion_text::harmless_line;

pub(super) const VERB: Verb = Verb::new("pinion clip", &tables::clip::SHOW, run);

/// `clip show` with text output unless `--json` is given, even if stdout is not a terminal.
pub(crate) const INFO: Verb = Verb::new("pinix hub", &tables::pinix::INFO, info);

/// Fetches the manifest of a clip.
pub(crate) fn manifest(caller: &Caller, alias: &str) -> Result<ClipManifest, Failure> {
    caller::wait(caller.explained(caller.client().clip_manifest(alias)))
}

fn run(line: &Line) -> Result<ExitCode, Failure> {
    let [alias] = line.exactly()?;
    let caller = Caller::of(line)?;
    let manifest = manifest(&caller, alias)?;
    print(line, || manifest.to_json(), || described(&manifest))
}

fn info(line: &Line) -> Result<ExitCode, Failure> {
    let [alias] = line.exactly()?;
    let caller = Caller::of(line)?;
    let manifest = manifest(&caller, alias)?;
    if line.has("--json") {
        out(&format!("{}\n", manifest.to_json()))
    } else {
        out(&described(&manifest))
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
    for field in input_fields(&command.input) {
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
