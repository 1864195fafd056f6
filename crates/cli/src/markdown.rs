//! Flags and commands as Markdown tables, and the generated blocks of pages that hold them.

use crate::place::Place;
use crate::table::Command;

/// The beginning of the line before a generated block; the words of the command follow, then ` -->`.
const BEGIN: &str = "<!-- flags of ";
/// The line after a generated block.
const END: &str = "<!-- end of flags -->";

/// Returns the flags of a command as a table.
pub fn flags(command: &Command) -> String {
    let mut text = "| flag | meaning |\n|---|---|\n".to_owned();
    for flag in command.all_flags() {
        let repeated = if flag.repeats { ", repeated" } else { "" };
        let shown = escaped(&flag.shown());
        text.push_str(&format!(
            "| `{shown}`{repeated} | {} |\n",
            escaped(flag.help)
        ));
    }
    text
}

/// Returns the page about all commands of these programs.
pub fn page(roots: &[&'static Command]) -> String {
    let mut text = "# Command line\n\nThe commands and flags of every name of the program. \
        `pinion COMMAND --help` prints the same for one command.\n\
        The flags of the [log](logging.md) belong to every command of `pinion`.\n\
        `PINION_WRITE_DOCS=1 cargo nextest run -p pinion-cli --test pages` writes this page from the tables in \
        `crates/cli`.\n"
        .to_owned();
    for root in roots {
        text.push_str(&reference(&Place::root(root)));
    }
    text
}

/// Returns a section per command below `root`: usage, one line about it, flags.
fn reference(root: &Place) -> String {
    let mut text = String::new();
    for place in root.all() {
        let command = place.command;
        if place.words() == root.words() && command.flags.is_empty() {
            continue;
        }
        let usage = place.usage().join("\n");
        let about = command.about;
        text.push_str(&format!(
            "\n## {}\n\n{about}.\n\n```\n{usage}\n```\n",
            place.words()
        ));
        if command.flags.is_empty() {
            continue;
        }
        let words = place.words();
        text.push_str(&format!("\n{BEGIN}{words} -->\n{}{END}\n", flags(command)));
    }
    text
}

/// Returns the page with every generated block replaced by the current table. Fails for a block of an unknown
/// command and for one without an end.
pub fn refreshed(page: &str, roots: &[&'static Command]) -> Result<String, String> {
    let mut text = String::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        text.push_str(line);
        text.push('\n');
        let Some(words) = line
            .strip_prefix(BEGIN)
            .and_then(|rest| rest.strip_suffix(" -->"))
        else {
            continue;
        };
        let (program, rest) = words.split_once(' ').unwrap_or((words, ""));
        let root = roots.iter().find(|root| root.name == program);
        let root = root.ok_or_else(|| format!("no program is named {program:?}"))?;
        let place = Place::find(root, rest.split_whitespace());
        if place.words() != words {
            return Err(format!("no command is named {words:?}"));
        }
        text.push_str(&flags(place.command));
        if !lines.any(|line| line == END) {
            return Err(format!("the flags of {words:?} do not end with {END}"));
        }
        text.push_str(END);
        text.push('\n');
    }
    Ok(text)
}

fn escaped(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{Flag, Section};

    static RUN: Command = Command {
        flags: &[&Section {
            title: "Output",
            flags: &[
                Flag::valued("--output", "a|b", "print a or b"),
                Flag::valued("--skip", "LIST", "skip these")
                    .or(&["-xt"])
                    .repeated(),
            ],
        }],
        ..Command::new("run", "Run a plan")
    };
    static ROOT: Command = Command {
        commands: &[&RUN],
        ..Command::new("pinion", "Run agents")
    };

    const BLOCK: &str = "<!-- flags of pinion run -->\n| flag | meaning |\n|---|---|\n| `--output a\\|b` | print a or b |\n\
        | `-xt, --skip LIST`, repeated | skip these |\n<!-- end of flags -->\n";

    #[test]
    fn a_block_is_replaced_by_the_table() {
        let page = "Text.\n\n<!-- flags of pinion run -->\nold\n<!-- end of flags -->\n\nMore.\n";
        let fresh = refreshed(page, &[&ROOT]).unwrap();
        assert_eq!(fresh, format!("Text.\n\n{BLOCK}\nMore.\n"));
        assert_eq!(refreshed(&fresh, &[&ROOT]).unwrap(), fresh);
        assert!(reference(&Place::root(&ROOT)).contains(BLOCK));
    }

    #[test]
    fn a_wrong_block_is_an_error() {
        for page in [
            "<!-- flags of pinion walk -->\n<!-- end of flags -->\n",
            "<!-- flags of pignon run -->\n<!-- end of flags -->\n",
            "<!-- flags of pinion run -->\n",
        ] {
            refreshed(page, &[&ROOT]).unwrap_err();
        }
    }
}
