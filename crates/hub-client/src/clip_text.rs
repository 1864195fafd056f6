//! Clips and hubs as text for people. Control characters of clips and hubs do not reach the terminal.

use std::fmt::Write;

use jiff::Timestamp;
use pinion_clip::manifest::input_fields;
use pinion_proto::hub::{ClipInfo, ClipManifest, ClipStatus, CommandInfo, HubInfoResponse};
use pinion_status::{Code, Failure};
use pinion_text::{harmless_line, nearest, shorten};

/// The headings of the rows of [`clip_row`].
pub const CLIP_HEADINGS: [&str; 6] = [
    "ALIAS", "STATUS", "PACKAGE", "VERSION", "PROVIDER", "COMMANDS",
];

/// Maximum width of the commands column, in characters.
const WIDE: usize = 48;

/// Returns the cells of a clip in a table.
pub fn clip_row(clip: &ClipInfo) -> Vec<String> {
    vec![
        clip.name.to_string(),
        status(clip.status).to_owned(),
        clip.package.to_string(),
        clip.version.to_string(),
        clip.provider.to_string(),
        shorten(&command_names(clip), WIDE),
    ]
}

/// Returns a clip as a line of `pinix`: alias, package, version, provider and commands, separated by tabs.
pub fn clip_in_tabs(clip: &ClipInfo) -> String {
    let names: Vec<String> = clip
        .commands
        .iter()
        .map(|it| harmless_line(&it.name))
        .collect();
    let cells =
        [&clip.name, &clip.package, &clip.version, &clip.provider].map(|it| harmless_line(it));
    format!("{}\t{}\n", cells.join("\t"), names.join(","))
}

/// Returns the sentence about a clip that was installed.
pub fn added_text(clip: &ClipInfo) -> String {
    let package = format!(
        "{} {}",
        harmless_line(&clip.package),
        harmless_line(&clip.version)
    );
    let mut text = format!("Added {} ({})", harmless_line(&clip.name), package.trim());
    if !clip.commands.is_empty() {
        text += &format!(": {}", harmless_line(&command_names(clip)));
    }
    text + ".\n"
}

/// Returns the sentence about a clip that was updated, or already had the newest version.
pub fn updated_text(before: &ClipInfo, now: &ClipInfo) -> String {
    let (alias, old, new) = (
        harmless_line(&now.name),
        harmless_line(&before.version),
        harmless_line(&now.version),
    );
    if old == new {
        format!("{alias} is up to date ({new}).\n")
    } else {
        format!("{alias}: {old} is now {new}.\n")
    }
}

/// Returns the names of the clip's commands, separated by commas.
fn command_names(clip: &ClipInfo) -> String {
    let names: Vec<&str> = clip.commands.iter().map(|it| it.name.as_str()).collect();
    names.join(", ")
}

/// Returns the word for a clip's status.
fn status(status: ClipStatus) -> &'static str {
    match status {
        ClipStatus::Running => "running",
        ClipStatus::Sleeping => "sleeping",
        ClipStatus::Error => "failed",
        _ => "-",
    }
}

/// Removes all commands but one from a manifest. Fails if the clip lists commands, and not this one.
pub fn keep_command(
    manifest: &mut ClipManifest,
    alias: &str,
    command: &str,
) -> Result<(), Failure> {
    let names = manifest.commands.iter().map(|it| &*it.name);
    let meant = nearest(command, names).map(str::to_owned);
    let lists_any = !manifest.commands.is_empty();
    manifest.commands.retain(|it| it.name == *command);
    if lists_any && manifest.commands.is_empty() {
        let hint = meant.map(|name| format!("; did you mean \"{name}\"?"));
        let hint = hint.unwrap_or_default();
        let message = format!("clip \"{alias}\" has no command \"{command}\"{hint}");
        return Err(Failure::new(Code::NotFound, message));
    }
    Ok(())
}

/// Formats a manifest. `strong` emphasises the heading.
pub fn manifest_text(manifest: &ClipManifest, strong: impl Fn(&str) -> String) -> String {
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
        // Writing to a String cannot fail.
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

/// Formats the properties of the hub at `url`.
pub fn hub_info_text(info: &HubInfoResponse, url: &str) -> String {
    let needs = if info.auth_required { "yes" } else { "no" };
    let started = Timestamp::from_millisecond(info.started_at_unix_ms).unwrap_or_default();
    let mut text = format!(
        "{} {} at {url}\n  mode          {}\n  protocol      {}\n  started       {started}\n  token needed  {needs}\n",
        harmless_line(&info.name),
        harmless_line(&info.version),
        harmless_line(&info.mode),
        harmless_line(&info.protocol),
    );
    if !info.scope.is_empty() {
        text += &format!("  you are       {}\n", harmless_line(&info.scope));
    }
    let features: Vec<String> = info.features.iter().map(|it| harmless_line(it)).collect();
    text + &format!("  features      {}\n", features.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_of_another_name_suggests_the_nearest_one() {
        let command = |name: &str| CommandInfo {
            name: name.to_owned().into(),
            ..CommandInfo::default()
        };
        let mut manifest = ClipManifest {
            commands: vec![command("list"), command("add")],
            ..ClipManifest::default()
        };
        let failure = keep_command(&mut manifest.clone(), "todo", "lits").unwrap_err();
        let expected = "clip \"todo\" has no command \"lits\"; did you mean \"list\"?";
        assert_eq!(failure.message, expected);
        keep_command(&mut manifest, "todo", "add").unwrap();
        assert_eq!(manifest.commands, [command("add")]);
    }

    #[test]
    fn control_characters_of_a_clip_are_replaced() {
        let clip = ClipInfo {
            name: "a\x1bb".to_owned().into(),
            version: "1".to_owned().into(),
            ..ClipInfo::default()
        };
        assert_eq!(added_text(&clip), "Added a\u{fffd}b (1).\n");
        assert_eq!(
            updated_text(&clip, &clip),
            "a\u{fffd}b is up to date (1).\n"
        );
    }
}
