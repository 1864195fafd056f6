//! The table of all keys.

use super::{Action, Binding, Hosts, Section};

const fn told(
    section: Section,
    hosts: Hosts,
    keys: &'static [&'static str],
    does: &'static str,
) -> Binding {
    Binding {
        section,
        hosts,
        keys,
        action: None,
        does,
    }
}

const fn does(
    section: Section,
    hosts: Hosts,
    keys: &'static [&'static str],
    action: Action,
    does: &'static str,
) -> Binding {
    Binding {
        section,
        hosts,
        keys,
        action: Some(action),
        does,
    }
}

/// All keys, in the order of the help page.
#[rustfmt::skip]
pub(crate) const BINDINGS: &[Binding] = {
    use Action::*;
    use Hosts::*;
    use Section::*;
    &[
        told(Talking, Session, &["Enter"], "send; while a run is active, steer it"),
        told(Talking, Turns, &["Enter", "Tab"], "send"),
        does(Talking, Session, &["Alt-Enter"], FollowUp, "send when the run has ended"),
        does(Talking, Session, &["Alt-Up"], TakeBack, "take queued messages back into the editor"),
        does(Talking, Session, &["Esc"], Interrupt, "stop the run; twice when idle: the session tree"),
        does(Talking, Turns, &["Esc"], Interrupt, "stop the answer"),
        told(Talking, Session, &["!"], "at the start: run a shell command and tell the model"),
        told(Talking, Session, &["!!"], "at the start: run a shell command, the model is not told"),
        told(Writing, Both, &["Shift-Enter", "Ctrl-J", "\\ Enter"], "new line"),
        told(Writing, Session, &["Tab"], "accept the completion, complete a path"),
        told(Writing, Turns, &["Tab"], "accept the completion"),
        told(Writing, Both, &["/"], "at the start: commands, templates, skills"),
        told(Writing, Both, &["@"], "files by name"),
        told(Writing, Both, &["Up", "Down"], "move; at the first and last row: what was sent before"),
        told(Writing, Both, &["Ctrl-A", "Ctrl-E"], "start and end of the line"),
        told(Writing, Both, &["Alt-B", "Alt-F"], "back and forward by a word; Ctrl with an arrow too"),
        told(Writing, Both, &["Ctrl-W", "Alt-D"], "cut the word before, the word after"),
        told(Writing, Both, &["Ctrl-U", "Ctrl-K"], "cut to the start, to the end of the line"),
        told(Writing, Both, &["Ctrl-Y", "Alt-Y"], "put back what was cut, what was cut before it"),
        told(Writing, Both, &["Ctrl-_", "Alt-_"], "undo, redo"),
        does(Reading, Both, &["PgUp"], ScrollUp, "up by a page; the wheel scrolls too"),
        does(Reading, Both, &["PgDn"], ScrollDown, "down by a page"),
        does(Reading, Both, &["Ctrl-Home"], ScrollToStart, "to the beginning"),
        does(Reading, Both, &["Ctrl-End"], ScrollToEnd, "to the end, and follow it"),
        does(Reading, Both, &["Ctrl-T"], FoldThinking, "fold or unfold thinking"),
        does(Reading, Both, &["Ctrl-O"], FoldTools, "fold or unfold what tools returned"),
        does(Reading, Both, &["Alt-L"], CopyAnswer, "copy the last answer"),
        does(Reading, Both, &["Alt-K"], CopyCode, "copy the code of the last answer"),
        does(Models, Session, &["Ctrl-L"], PickModel, "choose a model"),
        does(Models, Session, &["Ctrl-P"], NextModel, "next model"),
        does(Models, Session, &["Shift-Ctrl-P"], PreviousModel, "previous model"),
        does(Models, Session, &["Shift-Tab"], NextThinkingLevel, "next level of thinking"),
        told(Lists, Both, &["Up", "Down"], "move; Ctrl-P and Ctrl-N too"),
        told(Lists, Both, &["PgUp", "PgDn"], "by a page; in a long question: read on, in a short one: the conversation"),
        told(Lists, Both, &["Home", "End"], "first and last"),
        told(Lists, Both, &["Enter"], "choose"),
        told(Lists, Both, &["Esc"], "close; in a dialog: cancel it"),
        told(Lists, Both, &["Ctrl-C"], "close; in a dialog: cancel it and stop the run"),
        told(Lists, Both, &["Ctrl-O"], "in a dialog: fold or unfold what it is about"),
        told(Lists, Session, &["Tab"], "sessions: of this directory, of all directories"),
        told(Tree, Session, &["Enter"], "go on from there; a message of yours comes back into the editor"),
        told(Tree, Session, &["s"], "the same, with a summary of what is left"),
        told(Tree, Session, &["f"], "fork: a new session begins there"),
        told(Tree, Session, &["l"], "name the entry, or take its name away"),
        told(Tree, Session, &["/"], "search"),
        told(Tree, Session, &["Tab", "Ctrl-O"], "show the conversation, your messages, named entries, everything"),
        told(Tree, Session, &["Left", "Right"], "to the start of this branch, to the next branch"),
        does(Program, Both, &["Ctrl-G", "F1"], Help, "this help"),
        does(Program, Both, &["Ctrl-C"], ClearOrQuit, "clear the editor; twice: quit"),
        does(Program, Both, &["Ctrl-D"], QuitWhenEmpty, "quit, if the editor is empty"),
        does(Program, Both, &["Ctrl-Z"], Suspend, "suspend"),
    ]
};
