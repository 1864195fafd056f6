//! Handles keys.

use std::time::{Duration, Instant};

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, MouseEventKind};
use pinion_agent::{Command, Delivery};

use super::state::{DoublePress, Effect, State};
use crate::Abilities;
use crate::editor::EditorOutcome;
use crate::keys::{self, Action};
use crate::overlay::{Overlay, UserActivity};
use crate::terminal::SuspendTarget;
use crate::transcript::Scroll;

/// Time within which a second press counts.
const DOUBLE_PRESS_TIME: Duration = Duration::from_millis(800);
/// Time after the last edit during which the user counts as writing.
const WRITING_TIME: Duration = Duration::from_secs(2);
/// Rows that one step of the wheel scrolls.
const WHEEL_ROWS: isize = 3;

impl State {
    /// Handles an event of the terminal.
    pub fn terminal_event(&mut self, event: Event) {
        match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => self.key(key),
            Event::Paste(text) => self.paste(&text),
            Event::Mouse(mouse) => match mouse.kind {
                MouseEventKind::ScrollUp => self.wheel(-WHEEL_ROWS),
                MouseEventKind::ScrollDown => self.wheel(WHEEL_ROWS),
                _ => {}
            },
            _ => {}
        }
    }

    /// Scrolls the part of the screen that has the focus.
    fn wheel(&mut self, rows: isize) {
        let scroll = if rows < 0 {
            Scroll::Up(rows.unsigned_abs())
        } else {
            Scroll::Down(rows.unsigned_abs())
        };
        match &mut self.overlay {
            _ if !self.dialogs.is_empty() => {
                if !self.dialogs.scroll_by(rows) {
                    self.transcript.scroll(scroll);
                }
            }
            Some(overlay) => overlay.wheel(rows),
            None => self.transcript.scroll(scroll),
        }
    }

    fn paste(&mut self, text: &str) {
        if !self.dialogs.is_empty() {
            self.dialogs.paste(text);
        } else if let Some(overlay) = &mut self.overlay {
            overlay.paste(text);
        } else {
            self.editor.paste(text);
            self.completion.update(&self.editor);
        }
    }

    fn key(&mut self, key: KeyEvent) {
        if !self.dialogs.is_empty() {
            return self.dialog_key(key);
        }
        if self.overlay.is_some() {
            return self.overlay_key(key);
        }
        if self.completion.key(key, &mut self.editor) {
            return;
        }
        if let Some(action) = keys::action(key)
            && self.act(action, key)
        {
            return;
        }
        let is_tab = key.code == KeyCode::Tab && key.modifiers.is_empty();
        if is_tab && self.abilities() == Abilities::Turns {
            return self.submit(Delivery::Steer);
        }
        match self.editor.key(key) {
            EditorOutcome::Submit => self.submit(Delivery::Steer),
            EditorOutcome::Changed | EditorOutcome::Moved => {
                self.written = Some(Instant::now());
                self.completion.update(&self.editor);
            }
            EditorOutcome::Ignored => {}
        }
    }

    /// The activity that a question would interrupt now.
    pub(super) fn activity(&self) -> UserActivity {
        let recently = self
            .written
            .is_some_and(|when| when.elapsed() < WRITING_TIME);
        if recently || !self.editor.is_empty() {
            UserActivity::Writing
        } else {
            UserActivity::Idle
        }
    }

    /// Carries out an action of a key. Returns false if the action does not apply now.
    pub(super) fn act(&mut self, action: Action, key: KeyEvent) -> bool {
        match action {
            Action::FollowUp => self.submit(Delivery::FollowUp),
            Action::TakeBack => self.take_back(),
            Action::Interrupt => self.interrupt(),
            Action::ClearOrQuit => self.clear_or_quit(),
            Action::QuitWhenEmpty if self.editor.is_empty() => self.end(0),
            Action::QuitWhenEmpty => return false,
            Action::Suspend => self.effects.push(Effect::Suspend(SuspendTarget::Job)),
            Action::Help => self.show_help(),
            Action::ScrollUp => self.transcript.scroll(Scroll::PageUp),
            Action::ScrollDown => self.transcript.scroll(Scroll::PageDown),
            Action::ScrollToStart => self.transcript.scroll(Scroll::Start),
            Action::ScrollToEnd => self.transcript.scroll(Scroll::End),
            Action::FoldThinking => self.thinking = self.thinking.toggled(),
            Action::FoldTools => self.tools = self.tools.toggled(),
            Action::CopyAnswer => self.copy_answer(),
            Action::CopyCode => self.copy_code(),
            _ if self.abilities() == Abilities::Turns => return key.code != KeyCode::Tab,
            Action::PickModel => self.pick_model(""),
            Action::NextModel => self.cycle_model(1),
            Action::PreviousModel => self.cycle_model(-1),
            Action::NextThinkingLevel => self.send_and_refresh(Command::CycleThinkingLevel),
        }
        true
    }

    fn interrupt(&mut self) {
        if self.is_busy() || self.shells.is_running() {
            self.stop();
        } else if self.second_press(DoublePress::Tree) && self.abilities() == Abilities::Session {
            self.open_tree();
        } else {
            self.transcript.scroll(Scroll::End);
        }
    }

    fn clear_or_quit(&mut self) {
        if self.second_press(DoublePress::Quit) {
            return self.end(0);
        }
        if self.editor.is_empty() {
            self.hint("Press Ctrl-C again to quit.");
        } else {
            self.editor.clear();
            self.completion.update(&self.editor);
            self.hint("Press Ctrl-C again to quit.");
        }
    }

    fn second_press(&mut self, twice: DoublePress) -> bool {
        let now = Instant::now();
        let before = self.pressed.replace((twice, now));
        before.is_some_and(|(which, when)| which == twice && now - when < DOUBLE_PRESS_TIME)
    }

    /// Sends a command that changes the status line.
    pub(super) fn send_and_refresh(&self, command: Command) {
        self.send(command);
        self.ask_state();
    }
}
