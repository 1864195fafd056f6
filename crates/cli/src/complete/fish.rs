//! The completion script for fish.

use super::{ARGUMENT, Steps, flags};
use crate::place::Place;
use crate::table::Kind;

/// Returns the script.
pub(super) fn script(root: &Place) -> String {
    let places = root.all();
    let name = root.words();
    let steps = Steps::of(&places);
    let mut text = format!(
        "# Completions of {name} for fish.\nfunction __{name}_at\n    set -l at {name}\n    set -l flag\n    \
         for word in (commandline -opc)[2..-1]\n        if test -n \"$flag\"\n            set flag\n            \
         continue\n        end\n        switch \"$at $word\"\n"
    );
    for (typed, words) in &steps.commands {
        text.push_str(&format!(
            "            case {}\n                set at {}\n",
            quoted(typed),
            quoted(words)
        ));
    }
    let valued: Vec<String> = steps
        .values
        .iter()
        .map(|(typed, _)| quoted(typed))
        .collect();
    if !valued.is_empty() {
        text.push_str(&format!(
            "            case {}\n                set flag $word\n",
            valued.join(" ")
        ));
    }
    text.push_str("        end\n    end\n    echo $at\nend\n");
    for place in &places {
        let here = format!(
            "complete -c {name} -n 'test (__{name}_at) = \"{}\"'",
            place.words()
        );
        for child in place.command.commands {
            for word in std::iter::once(&child.name).chain(child.aliases) {
                text.push_str(&format!("{here} -f -a {word} -d {}\n", quoted(child.about)));
            }
        }
        for argument in place.command.arguments {
            if let Some(values) = values(name, argument.kind) {
                text.push_str(&format!("{here} -f -a {values}\n"));
            }
        }
        for flag in flags(place) {
            for spelling in flag.spellings() {
                let written = written(spelling);
                let value = match flag.kind() {
                    None => String::new(),
                    Some(kind) => match values(name, kind) {
                        Some(values) => format!(" -x -a {values}"),
                        None => " -r".to_owned(),
                    },
                };
                text.push_str(&format!(
                    "{here} {written}{value} -d {}\n",
                    quoted(flag.help)
                ));
            }
        }
        text.push_str(&format!("{here} -l help -s h -d 'show the help'\n"));
    }
    text
}

/// Returns the option of `complete` for one spelling of a flag.
fn written(spelling: &str) -> String {
    let bare = spelling.trim_start_matches('-');
    if spelling.starts_with("--") {
        format!("-l {bare}")
    } else if bare.chars().count() == 1 {
        format!("-s {bare}")
    } else {
        format!("-o {bare}")
    }
}

fn values(name: &str, kind: Kind) -> Option<String> {
    match kind {
        Kind::OneOf(values) => Some(quoted(&values.join(" "))),
        kind => kind.listed_as().map(|kind| {
            quoted(&format!(
                "({name} {ARGUMENT} {kind} (commandline -ct) 2>/dev/null)"
            ))
        }),
    }
}

/// Quotes text for fish, where a backslash escapes a quote inside quotes.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}
