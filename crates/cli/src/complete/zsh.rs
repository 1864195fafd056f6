//! The completion script for zsh.

use super::{ARGUMENT, Steps, flags, quoted};
use crate::place::Place;
use crate::table::Kind;

/// Returns the script.
pub(super) fn script(root: &Place) -> String {
    let places = root.all();
    let name = root.words();
    let steps = Steps::of(&places);
    let mut text = format!(
        "#compdef {name}\n# Completions of {name} for zsh.\n_{name}() {{\n    \
         local at={name} flag= word index kind= files=\n    local -a found\n    \
         for ((index = 2; index < CURRENT; index++)); do\n        word=$words[index]\n        \
         if [[ -n $flag ]]; then flag=; continue; fi\n        case \"$at $word\" in\n"
    );
    for (typed, words) in &steps.commands {
        text.push_str(&format!(
            "        {}) at={} ;;\n",
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
        text.push_str(&format!("        {}) flag=$word ;;\n", valued.join("|")));
    }
    text.push_str("        esac\n    done\n    if [[ -n $flag ]]; then\n        files=1\n        case \"$at $flag\" in\n");
    for (typed, kind) in &steps.values {
        if let Some(set) = values(*kind) {
            text.push_str(&format!("        {}) files=; {set} ;;\n", quoted(typed)));
        }
    }
    text.push_str(
        "        esac\n    elif [[ $words[CURRENT] == -* ]]; then\n        case $at in\n",
    );
    for place in &places {
        let help = "--help:show the help".to_owned();
        let described = flags(place).flat_map(|flag| {
            let help = flag.help;
            flag.spellings()
                .map(move |spelling| described(spelling, help))
        });
        let described: Vec<String> = described.chain([help]).map(|it| quoted(&it)).collect();
        text.push_str(&format!(
            "        {}) found=({}) ;;\n",
            quoted(place.words()),
            described.join(" ")
        ));
    }
    text.push_str("        esac\n    else\n        files=1\n        case $at in\n");
    for place in &places {
        let command = place.command;
        let mut sets = Vec::new();
        if !command.commands.is_empty() {
            let words = command.commands.iter().flat_map(|child| {
                let names = std::iter::once(&child.name).chain(child.aliases);
                names.map(|name| quoted(&described(name, child.about)))
            });
            let words: Vec<String> = words.collect();
            sets.push(format!("found=({})", words.join(" ")));
        }
        sets.extend(
            command
                .arguments
                .iter()
                .filter_map(|argument| values(argument.kind)),
        );
        if !sets.is_empty() {
            text.push_str(&format!(
                "        {}) {} ;;\n",
                quoted(place.words()),
                sets.join("; ")
            ));
        }
    }
    text.push_str(&format!(
        "        esac\n    fi\n    if [[ -n $kind ]]; then\n        \
         compadd -- ${{(f)\"$(\"$words[1]\" {ARGUMENT} $kind \"$words[CURRENT]\" 2>/dev/null)\"}}\n    fi\n    \
         if (( $#found )); then _describe -t values value found; fi\n    \
         if [[ -n $files ]]; then _files; fi\n}}\n\
         if [[ $funcstack[1] == _{name} ]]; then _{name} \"$@\"; else compdef _{name} {name}; fi\n"
    ));
    text
}

/// Returns an entry of `_describe`, in which a colon separates the word from its description.
fn described(word: &str, about: &str) -> String {
    format!("{}:{about}", word.replace(':', "\\:"))
}

fn values(kind: Kind) -> Option<String> {
    match kind {
        Kind::OneOf(values) => Some(format!("found+=({})", values.join(" "))),
        kind => kind.listed_as().map(|kind| format!("kind={kind}")),
    }
}
