//! Man pages in the language of roff.

use crate::place::Place;

/// Returns the man page of a command or a group.
pub fn page(place: &Place, version: &str) -> String {
    let command = place.command;
    let title = place.words().replace(' ', "-");
    let mut text = format!(
        ".TH {} 1 \"\" \"pinion {}\" \"\"\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n",
        escaped(&title.to_uppercase()),
        escaped(version),
        escaped(&title),
        escaped(command.about),
    );
    for usage in place.usage() {
        text.push_str(&format!(".PP\n{}\n", line(&usage)));
    }
    paragraphs(&mut text, "DESCRIPTION", command.text);
    if !command.commands.is_empty() {
        text.push_str(".SH COMMANDS\n");
        for child in place.children() {
            let usage = child.usage().into_iter().next().unwrap_or_default();
            entry(&mut text, &usage, child.command.about);
        }
    }
    for section in command.flags {
        text.push_str(&format!(".SH {}\n", escaped(&section.title.to_uppercase())));
        for flag in section.flags {
            entry(&mut text, &flag.shown(), flag.help);
        }
    }
    if !place.common_flags().is_empty() {
        text.push_str(".SH LOG\n");
        for flag in place.common_flags() {
            entry(&mut text, &flag.shown(), flag.help);
        }
    }
    paragraphs(&mut text, "NOTES", command.notes);
    if !command.examples.is_empty() {
        text.push_str(".SH EXAMPLES\n");
        for example in command.examples {
            text.push_str(&format!(".PP\n.nf\n{}\n.fi\n", line(example)));
        }
    }
    text
}

fn entry(text: &mut String, term: &str, about: &str) {
    text.push_str(&format!(
        ".TP\n\\fB{}\\fR\n{}\n",
        escaped(term),
        line(about)
    ));
}

fn paragraphs(text: &mut String, title: &str, body: &str) {
    if body.is_empty() {
        return;
    }
    text.push_str(&format!(".SH {title}\n.nf\n"));
    for body_line in body.trim_end().lines() {
        text.push_str(&line(body_line));
        text.push('\n');
    }
    text.push_str(".fi\n");
}

/// Returns a line of text that roff does not read as a request.
fn line(text: &str) -> String {
    let escaped = escaped(text);
    if escaped.starts_with(['.', '\'']) {
        format!("\\&{escaped}")
    } else {
        escaped
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\e").replace('-', "\\-")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{Command, Flag, Section};

    static RUN: Command = Command {
        flags: &[&Section {
            title: "Output",
            flags: &[Flag::bare("--quiet", ".hidden \\ text").or(&["-q"])],
        }],
        examples: &["fleet run -q"],
        ..Command::new("run", "Run a plan")
    };

    #[test]
    fn a_page_has_the_sections_of_a_manual() {
        assert_eq!(
            page(&Place::below("fleet", &RUN), "1.0"),
            ".TH FLEET\\-RUN 1 \"\" \"pinion 1.0\" \"\"\n.SH NAME\nfleet\\-run \\- Run a plan\n\
             .SH SYNOPSIS\n.PP\nfleet run [flags]\n.SH OUTPUT\n.TP\n\\fB\\-q, \\-\\-quiet\\fR\n\
             \\&.hidden \\e text\n.SH EXAMPLES\n.PP\n.nf\nfleet run \\-q\n.fi\n"
        );
    }
}
