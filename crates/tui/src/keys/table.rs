//! The table of all keys.

use super::{Action, Binding, Hosts, Section};

const fn listed(
    section: Section,
    hosts: Hosts,
    keys: &'static [&'static str],
    description: &'static str,
) -> Binding {
    Binding {
        section,
        hosts,
        keys,
        action: None,
        description,
    }
}

const fn bound(
    section: Section,
    hosts: Hosts,
    keys: &'static [&'static str],
    action: Action,
    description: &'static str,
) -> Binding {
    Binding {
        section,
        hosts,
        keys,
        action: Some(action),
        description,
    }
}

/// All keys, in the order of the help page.
#[rustfmt::skip]
pub(crate) const BINDINGS: &[Binding] = {
    use Action::*;
    use Hosts::*;
    use Section::*;
    &[
        listed(Talking, Session, &["Enter"], "send; while a run is active, steer it"),
        listed(Talking, Turns, &["Enter", "Tab"], "send"),
        bound(Talking, Session, &["Alt-Enter"], FollowUp, "send when the run has ended"),
        bound(Talking, Session, &["Alt-Up"], TakeBack, "take queued messages back into the editor"),
        bound(Talking, Session, &["Esc"], Interrupt, "stop the run; twice when idle: the session tree"),
        bound(Talking, Turns, &["Esc"], Interrupt, "stop the answer"),
        listed(Talking, Session, &["!"], "at the start: run a shell command and send its output to the model"),
        listed(Talking, Session, &["!!"], "at the start: run a shell command that the model does not see"),
        listed(Writing, Both, &["Shift-Enter", "Ctrl-J", "\\ Enter"], "new line"),
        listed(Writing, Session, &["Tab"], "accept the completion, complete a path"),
        listed(Writing, Turns, &["Tab"], "accept the completion"),
        listed(Writing, Both, &["/"], "at the start: commands, templates, skills"),
        listed(Writing, Both, &["@"], "files by name"),
        listed(Writing, Both, &["Up", "Down"], "move; at the first and last row: earlier messages"),
        listed(Writing, Both, &["Ctrl-A", "Ctrl-E"], "start and end of the line"),
        listed(Writing, Both, &["Alt-B", "Alt-F"], "back and forward by a word; Ctrl with an arrow too"),
        listed(Writing, Both, &["Ctrl-W", "Alt-D"], "cut the word before, the word after"),
        listed(Writing, Both, &["Ctrl-U", "Ctrl-K"], "cut to the start, to the end of the line"),
        listed(Writing, Both, &["Ctrl-Y", "Alt-Y"], "put back the last cut, the one before it"),
        listed(Writing, Both, &["Ctrl-_", "Alt-_"], "undo, redo"),
        bound(Reading, Both, &["PgUp"], ScrollUp, "up by a page; the wheel scrolls too"),
        bound(Reading, Both, &["PgDn"], ScrollDown, "down by a page"),
        bound(Reading, Both, &["Ctrl-Home"], ScrollToStart, "to the beginning"),
        bound(Reading, Both, &["Ctrl-End"], ScrollToEnd, "to the end, and follow it"),
        bound(Reading, Both, &["Ctrl-T"], FoldThinking, "fold or unfold thinking"),
        bound(Reading, Both, &["Ctrl-O"], FoldTools, "fold or unfold tool output"),
        bound(Reading, Both, &["Alt-L"], CopyAnswer, "copy the last answer"),
        bound(Reading, Both, &["Alt-K"], CopyCode, "copy the code of the last answer"),
        bound(Models, Session, &["Ctrl-L"], PickModel, "choose a model"),
        bound(Models, Session, &["Ctrl-P"], NextModel, "next model"),
        bound(Models, Session, &["Shift-Ctrl-P"], PreviousModel, "previous model"),
        bound(Models, Session, &["Shift-Tab"], NextThinkingLevel, "next level of thinking"),
        listed(Lists, Both, &["Up", "Down"], "move; Ctrl-P and Ctrl-N too"),
        listed(Lists, Both, &["PgUp", "PgDn"], "by a page; in a dialog: scroll a long question, else the conversation"),
        listed(Lists, Both, &["Home", "End"], "first and last"),
        listed(Lists, Both, &["Enter"], "choose"),
        listed(Lists, Both, &["Esc"], "close; in a dialog: cancel it"),
        listed(Lists, Both, &["Ctrl-C"], "close; in a dialog: cancel it and stop the run"),
        listed(Lists, Both, &["Ctrl-O"], "in a dialog: fold or unfold the tool call it is about"),
        listed(Lists, Session, &["Tab"], "in the session list: switch between this directory and all"),
        listed(Tree, Session, &["Enter"], "continue from there; your own message returns to the editor"),
        listed(Tree, Session, &["s"], "continue from there, with a summary of the abandoned branch"),
        listed(Tree, Session, &["f"], "fork: start a new session there"),
        listed(Tree, Session, &["l"], "name the entry, or remove its name"),
        listed(Tree, Session, &["/"], "search"),
        listed(Tree, Session, &["Tab", "Ctrl-O"], "switch between conversation, your messages, named entries, everything"),
        listed(Tree, Session, &["Left", "Right"], "to the start of this branch, to the next branch"),
        bound(Program, Both, &["Ctrl-G", "F1"], Help, "this help"),
        bound(Program, Both, &["Ctrl-C"], ClearOrQuit, "clear the editor; twice: quit"),
        bound(Program, Both, &["Ctrl-D"], QuitWhenEmpty, "quit, if the editor is empty"),
        bound(Program, Both, &["Ctrl-Z"], Suspend, "suspend"),
    ]
};
