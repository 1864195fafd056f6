//! The keys of the editor.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::buffer::ChangeKind;
use super::kills::Side;
use super::{Editor, LastKey, unit};

/// The effect of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EditorOutcome {
    /// The text changed.
    Changed,
    /// The cursor may have moved.
    Moved,
    /// The text should be sent.
    Submit,
    /// The editor does not handle this key.
    Ignored,
}

/// An editing command.
#[derive(Debug, Clone, Copy)]
enum Action {
    Insert(char),
    Enter,
    NewLine,
    Left,
    Right,
    Up,
    Down,
    WordLeft,
    WordRight,
    LineStart,
    LineEnd,
    TextStart,
    TextEnd,
    DeleteBefore,
    DeleteAfter,
    CutWordBefore,
    CutWordAfter,
    CutChunkBefore,
    CutToLineStart,
    CutToLineEnd,
    Yank,
    YankOlder,
    Undo,
    Redo,
}

fn action(key: KeyEvent) -> Option<Action> {
    let foreign = KeyModifiers::SUPER | KeyModifiers::HYPER | KeyModifiers::META;
    if key.modifiers.intersects(foreign) {
        return None;
    }
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    let alt = key.modifiers.contains(KeyModifiers::ALT);
    let shift = key.modifiers.contains(KeyModifiers::SHIFT);
    Some(match (key.code, control, alt) {
        (KeyCode::Char(character), false, false) => Action::Insert(character),
        (KeyCode::Enter, false, false) if shift => Action::NewLine,
        (KeyCode::Enter, false, false) => Action::Enter,
        (KeyCode::Left, false, false) => Action::Left,
        (KeyCode::Right, false, false) => Action::Right,
        (KeyCode::Up, false, false) => Action::Up,
        (KeyCode::Down, false, false) => Action::Down,
        (KeyCode::Left, _, _) => Action::WordLeft,
        (KeyCode::Right, _, _) => Action::WordRight,
        (KeyCode::Home, false, false) => Action::LineStart,
        (KeyCode::End, false, false) => Action::LineEnd,
        (KeyCode::Backspace, false, false) => Action::DeleteBefore,
        (KeyCode::Backspace, _, _) => Action::CutWordBefore,
        (KeyCode::Delete, false, false) => Action::DeleteAfter,
        (KeyCode::Delete, _, _) => Action::CutWordAfter,
        (KeyCode::Char(character), true, false) => return control_action(character, shift),
        (KeyCode::Char(character), false, true) => return alt_action(character),
        _ => return None,
    })
}

fn control_action(character: char, shift: bool) -> Option<Action> {
    Some(match character.to_ascii_lowercase() {
        '_' | '-' => Action::Undo,
        // Terminals without a better protocol send these for Ctrl-_.
        '7' | '/' => Action::Undo,
        _ if shift => return None,
        'a' => Action::LineStart,
        'e' => Action::LineEnd,
        'b' => Action::Left,
        'f' => Action::Right,
        'h' => Action::DeleteBefore,
        'd' => Action::DeleteAfter,
        'j' => Action::NewLine,
        'k' => Action::CutToLineEnd,
        'u' => Action::CutToLineStart,
        'w' => Action::CutChunkBefore,
        'y' => Action::Yank,
        _ => return None,
    })
}

fn alt_action(character: char) -> Option<Action> {
    Some(match character.to_ascii_lowercase() {
        'b' => Action::WordLeft,
        'f' => Action::WordRight,
        'd' => Action::CutWordAfter,
        'y' => Action::YankOlder,
        '_' | '-' => Action::Redo,
        '<' => Action::TextStart,
        '>' => Action::TextEnd,
        _ => return None,
    })
}

impl Editor {
    /// Runs the command of a key.
    pub(crate) fn key(&mut self, key: KeyEvent) -> EditorOutcome {
        if key.kind == KeyEventKind::Release {
            return EditorOutcome::Ignored;
        }
        let Some(action) = action(key) else {
            return EditorOutcome::Ignored;
        };
        let revision = self.buffer.revision();
        match self.act(action) {
            EditorOutcome::Moved if self.buffer.revision() != revision => EditorOutcome::Changed,
            outcome => outcome,
        }
    }

    /// Every command returns `Moved`; [`Editor::key`] detects changes of the text by its revision.
    fn act(&mut self, action: Action) -> EditorOutcome {
        let text = self.buffer.text();
        let cursor = self.buffer.cursor();
        match action {
            Action::Insert(character) => return self.insert(character),
            Action::Enter => return self.enter(),
            Action::NewLine => self.change(cursor..cursor, "\n", ChangeKind::Typed),
            Action::Left => self.move_to(unit::before(text, cursor)),
            Action::Right => self.move_to(unit::after(text, cursor)),
            Action::WordLeft => self.move_to(unit::word_start(text, cursor)),
            Action::WordRight => self.move_to(unit::word_end(text, cursor)),
            Action::LineStart => self.move_to(self.buffer.line_start(cursor)),
            Action::LineEnd => self.move_to(self.buffer.line_end(cursor)),
            Action::TextStart => self.move_to(0),
            Action::TextEnd => self.move_to(text.len()),
            Action::Up => self.up(),
            Action::Down => self.down(),
            Action::DeleteBefore => {
                self.change(unit::before(text, cursor)..cursor, "", ChangeKind::Whole)
            }
            Action::DeleteAfter if text.is_empty() => return EditorOutcome::Ignored,
            Action::DeleteAfter => {
                self.change(cursor..unit::after(text, cursor), "", ChangeKind::Whole)
            }
            Action::CutWordBefore => self.cut(unit::word_start(text, cursor)..cursor, Side::Before),
            Action::CutWordAfter => self.cut(cursor..unit::word_end(text, cursor), Side::After),
            Action::CutChunkBefore => {
                self.cut(unit::chunk_start(text, cursor)..cursor, Side::Before)
            }
            Action::CutToLineStart => {
                let start = self.buffer.line_start(cursor);
                let start = if start == cursor {
                    unit::before(text, cursor)
                } else {
                    start
                };
                self.cut(start..cursor, Side::Before);
            }
            Action::CutToLineEnd => {
                let end = self.buffer.line_end(cursor);
                let end = if end == cursor {
                    unit::after(text, cursor)
                } else {
                    end
                };
                self.cut(cursor..end, Side::After);
            }
            Action::Yank => self.yank(),
            Action::YankOlder => self.yank_older(),
            Action::Undo => {
                self.history.leave();
                self.buffer.undo();
                self.settle(LastKey::Other);
            }
            Action::Redo => {
                self.buffer.redo();
                self.settle(LastKey::Other);
            }
        }
        EditorOutcome::Moved
    }

    fn insert(&mut self, character: char) -> EditorOutcome {
        if character.is_control() {
            return EditorOutcome::Ignored;
        }
        let cursor = self.buffer.cursor();
        let text = self.pastes.guard(character.to_string());
        self.change(cursor..cursor, &text, ChangeKind::Typed);
        EditorOutcome::Moved
    }

    /// A backslash before the cursor turns Enter into a line break.
    fn enter(&mut self) -> EditorOutcome {
        let cursor = self.buffer.cursor();
        if !self.buffer.before_cursor().ends_with('\\') {
            return EditorOutcome::Submit;
        }
        self.change(cursor - 1..cursor, "\n", ChangeKind::Whole);
        EditorOutcome::Moved
    }
}
