//! Creates help pages from command files.

use crate::built_in::{BuiltIn, Group};
use crate::command::Command;
use crate::field::{Field, FieldType};

/// The amount of detail on a help page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HelpLevel {
    /// The command's own options and the most common others.
    Short,
    /// All options.
    Long,
}

/// The column at which the text of an option begins.
const HELP_COLUMN: usize = 34;

impl Command {
    /// Returns the help page. `call` starts the command, such as `pinion run-command explain.yaml`.
    pub fn help(&self, call: &str, level: HelpLevel, built_ins: &[BuiltIn]) -> String {
        let mut page = String::new();
        if self.short.is_empty() {
            page.push_str(&format!("{}\n", self.name));
        } else {
            page.push_str(&format!("{}: {}\n", self.name, self.short));
        }
        if !self.long.trim().is_empty() {
            page.push_str(&format!("\n{}\n", self.long.trim()));
        }
        page.push_str(&format!(
            "\nUsage:\n  {call} [options]{}\n",
            self.positional_usage()
        ));
        section(
            &mut page,
            "Arguments",
            self.arguments
                .iter()
                .map(|field| (format!("  {}", shown_argument(field)), described(field))),
        );
        section(
            &mut page,
            "Options of this command",
            self.flags.iter().map(|field| {
                (
                    option(field.short, &field.option(), field.kind),
                    described(field),
                )
            }),
        );
        let mut groups: Vec<Group> = Vec::new();
        for option in built_ins {
            if !groups.contains(&option.group) {
                groups.push(option.group);
            }
        }
        for group in groups {
            if level == HelpLevel::Short && !group.is_common() {
                continue;
            }
            let title = format!("Options: {}", group.name());
            section(
                &mut page,
                &title,
                built_ins.iter().filter(|o| o.group == group).map(|known| {
                    (
                        option(known.short, known.name, known.kind),
                        built_in_described(known),
                    )
                }),
            );
        }
        if level == HelpLevel::Short {
            page.push_str("\nMore options: --long-help. The command file itself: --print-yaml.\n");
        }
        page
    }

    fn positional_usage(&self) -> String {
        self.arguments
            .iter()
            .map(|field| {
                let shown = shown_argument(field);
                if field.required {
                    format!(" {shown}")
                } else {
                    format!(" [{shown}]")
                }
            })
            .collect()
    }
}

fn shown_argument(field: &Field) -> String {
    let dots = if field.kind.is_list() { "…" } else { "" };
    format!("<{}>{dots}", field.name)
}

fn option(short: Option<char>, name: &str, kind: FieldType) -> String {
    let letter = short.map_or_else(|| "    ".to_owned(), |letter| format!("-{letter}, "));
    match kind.placeholder() {
        "" => format!("  {letter}--{name}"),
        placeholder => format!("  {letter}--{name} {placeholder}"),
    }
}

fn described(field: &Field) -> String {
    let mut notes = vec![field.kind.name().to_owned()];
    if field.required {
        notes.push("required".to_owned());
    }
    if !field.choices.is_empty() {
        notes.push(format!("one of {}", field.choices.join(", ")));
    }
    if let Some(default) = &field.default
        && field.kind != FieldType::Secret
    {
        notes.push(format!("default {default}"));
    }
    text(&field.help, &notes)
}

fn built_in_described(known: &BuiltIn) -> String {
    let mut notes = Vec::new();
    let choices: Vec<&str> = known
        .choices
        .iter()
        .copied()
        .filter(|c| !c.is_empty())
        .collect();
    if !choices.is_empty() {
        notes.push(format!("one of {}", choices.join(", ")));
    }
    match known.default {
        None | Some("" | "false") => {}
        Some(default) => notes.push(format!("default {default}")),
    }
    text(known.help, &notes)
}

fn text(help: &str, notes: &[String]) -> String {
    let notes = notes.join("; ");
    match (help.is_empty(), notes.is_empty()) {
        (_, true) => help.to_owned(),
        (true, false) => format!("({notes})"),
        (false, false) => format!("{help} ({notes})"),
    }
}

fn section(page: &mut String, title: &str, rows: impl Iterator<Item = (String, String)>) {
    let mut rows = rows.peekable();
    if rows.peek().is_none() {
        return;
    }
    page.push_str(&format!("\n{title}:\n"));
    for (left, right) in rows {
        let width = left.chars().count();
        let gap = if width + 2 > HELP_COLUMN {
            format!("\n{}", " ".repeat(HELP_COLUMN))
        } else {
            " ".repeat(HELP_COLUMN - width)
        };
        let right = right.replace('\n', &format!("\n{}", " ".repeat(HELP_COLUMN)));
        page.push_str(format!("{left}{gap}{right}").trim_end());
        page.push('\n');
    }
}
