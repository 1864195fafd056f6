//! The completion script for bash.

use super::{ARGUMENT, Steps, flags, quoted};
use crate::place::Place;
use crate::table::Kind;

/// Returns the script.
pub(super) fn script(root: &Place) -> String {
    let places = root.all();
    let name = root.words();
    let steps = Steps::of(&places);
    let mut text = format!(
        "# Completions of {name} for bash.\n_{name}() {{\n    \
         local cur=${{COMP_WORDS[COMP_CWORD]}} at={name} flag= word index words= kind=\n    COMPREPLY=()\n    \
         for ((index = 1; index < COMP_CWORD; index++)); do\n        word=${{COMP_WORDS[index]}}\n        \
         if [[ $word == '=' ]]; then continue; fi\n        if [[ -n $flag ]]; then flag=; continue; fi\n        \
         case \"$at $word\" in\n"
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
    text.push_str(
        "        esac\n    done\n    if [[ $cur == '=' ]]; then cur=; fi\n    if [[ -n $flag ]]; then\n        \
         case \"$at $flag\" in\n",
    );
    for (typed, kind) in &steps.values {
        if let Some(set) = values(*kind) {
            text.push_str(&format!("        {}) {set} ;;\n", quoted(typed)));
        }
    }
    text.push_str("        esac\n    elif [[ $cur == -* ]]; then\n        case $at in\n");
    for place in &places {
        let spellings: Vec<&str> = flags(place).flat_map(crate::Flag::spellings).collect();
        let spellings = format!(" {} --help ", spellings.join(" ")).replace("  ", " ");
        text.push_str(&format!(
            "        {}) words={} ;;\n",
            quoted(place.words()),
            quoted(&spellings)
        ));
    }
    text.push_str("        esac\n    else\n        case $at in\n");
    for place in &places {
        let command = place.command;
        let mut sets = Vec::new();
        if !command.commands.is_empty() {
            let words: Vec<&str> = command.words().collect();
            sets.push(format!(
                "words={}",
                quoted(&format!(" {} ", words.join(" ")))
            ));
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
         words=\"$words $(\"${{COMP_WORDS[0]}}\" {ARGUMENT} \"$kind\" \"$cur\" 2>/dev/null)\"\n    fi\n    \
         COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n}}\ncomplete -o default -F _{name} {name}\n"
    ));
    text
}

fn values(kind: Kind) -> Option<String> {
    match kind {
        Kind::OneOf(values) => Some(format!("words=\"$words \"{}", quoted(&values.join(" ")))),
        kind => kind.listed_as().map(|kind| format!("kind={kind}")),
    }
}
