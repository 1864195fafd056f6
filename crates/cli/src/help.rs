//! The text of `--help`, for a command and for a group of commands.

use crate::place::Place;

/// The longest line, in characters.
const WIDTH: usize = 118;
/// The widest left column; longer entries stand on a line of their own.
const COLUMN: usize = 40;

/// Returns the help of a command or a group.
pub fn text(place: &Place) -> String {
    let command = place.command;
    let mut text = format!("{}.\n", command.about);
    if !command.text.is_empty() {
        text.push_str(command.text.trim_end());
        text.push('\n');
    }
    text.push_str("\nUsage:\n");
    if command.commands.is_empty() || !command.usage.is_empty() {
        for usage in place.usage() {
            text.push_str(&format!("  {usage}\n"));
        }
    }
    if !command.commands.is_empty() {
        let rows: Vec<(String, &str)> = place.children().map(|child| row(place, &child)).collect();
        text.push_str(&columns(&rows));
        text.push_str("\nEach command has --help.\n");
    }
    for section in command.flags {
        let rows: Vec<(String, &str)> = section
            .flags
            .iter()
            .map(|flag| (flag.shown(), flag.help))
            .collect();
        text.push_str(&format!("\n{}:\n{}", section.title, columns(&rows)));
    }
    let common: Vec<&str> = place.common_flags().iter().map(|flag| flag.name).collect();
    if !common.is_empty() && command.commands.is_empty() {
        text.push_str(&format!(
            "\nFlags of every command: {}.\n",
            common.join(", ")
        ));
    }
    if !command.notes.is_empty() {
        text.push_str(&format!("\n{}\n", command.notes.trim_end()));
    }
    if !command.examples.is_empty() {
        text.push_str("\nExamples:\n");
        for example in command.examples {
            text.push_str(&format!("  {example}\n"));
        }
    }
    text
}

/// Returns the usage line of a command in the help of its group, with the line about it.
fn row(group: &Place, child: &Place) -> (String, &'static str) {
    let is_default = group.command.otherwise == Some(child.command);
    let usage = child.usage().into_iter().next().unwrap_or_default();
    let usage = if is_default {
        let rest = usage.strip_prefix(child.words()).unwrap_or_default();
        format!("{} [{}]{rest}", group.words(), child.command.name)
    } else {
        usage
    };
    (usage, child.command.about)
}

/// Lays out two columns; the right one is wrapped.
fn columns(rows: &[(String, &str)]) -> String {
    let widths = rows.iter().map(|(left, _)| left.chars().count());
    let width = widths.filter(|width| *width <= COLUMN).max().unwrap_or(0);
    let mut text = String::new();
    for (left, right) in rows {
        let lines = wrapped(right, WIDTH.saturating_sub(width + 4));
        let mut lines = lines.iter();
        if left.chars().count() <= width {
            let first = lines.next().map_or("", String::as_str);
            let line = format!("  {left:width$}  {first}");
            text.push_str(line.trim_end());
            text.push('\n');
        } else {
            text.push_str(&format!("  {left}\n"));
        }
        for line in lines {
            text.push_str(&format!("  {:width$}  {line}\n", ""));
        }
    }
    text
}

/// Breaks text at spaces into lines of at most `width` characters.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{Argument, Command, Flag, Kind, Section};

    static RUN: Command = Command {
        arguments: &[Argument::one("PLAN.yaml", Kind::File)],
        flags: &[&Section {
            title: "Output",
            flags: &[
                Flag::valued("--output", "FORMAT", "print the report or every event"),
                Flag::bare("--quiet", "print no progress").or(&["-q"]),
            ],
        }],
        notes: "Exit codes: 0 done, 1 failed.",
        examples: &["pinion fleet run review.yaml"],
        ..Command::new("run", "Run a plan")
    };
    static LIST: Command = Command::new("list", "List the runs");
    static FLEET: Command = Command {
        commands: &[&RUN, &LIST],
        otherwise: Some(&LIST),
        ..Command::new("fleet", "Run many agents")
    };

    #[test]
    fn a_command_shows_usage_flags_and_examples() {
        assert_eq!(
            text(&Place::below("pinion fleet", &RUN)),
            "Run a plan.\n\nUsage:\n  pinion fleet run PLAN.yaml [flags]\n\n\
             Output:\n  --output FORMAT  print the report or every event\n  -q, --quiet      print no progress\n\n\
             Flags of every command: --log, --log-format, --log-file.\n\nExit codes: 0 done, 1 failed.\n\nExamples:\n  pinion fleet run review.yaml\n"
        );
    }

    #[test]
    fn a_group_shows_its_commands() {
        assert_eq!(
            text(&Place::below("pinion", &FLEET)),
            "Run many agents.\n\nUsage:\n  pinion fleet run PLAN.yaml [flags]  Run a plan\n  \
             pinion fleet [list]                 List the runs\n\nEach command has --help.\n"
        );
    }

    #[test]
    fn long_texts_are_wrapped() {
        let long = "word ".repeat(60);
        let text = columns(&[("--flag".to_owned(), long.trim())]);
        assert!(text.lines().count() > 2);
        assert!(
            text.lines().all(|line| line.chars().count() <= 120),
            "{text}"
        );
    }
}
