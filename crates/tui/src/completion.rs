//! Completion of commands after `/`, files after `@`, and paths with Tab.
//!
//! It reads the text before the cursor of an [`Editor`] and inserts the chosen completion there.
//! The chat provides the commands; a thread finds the files.

mod commands;
mod finder;
mod listing;
mod matching;
mod paths;
mod popup;
#[cfg(test)]
mod tests;
mod token;

use std::path::PathBuf;
use std::sync::Arc;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::editor::Editor;
use crate::theme::Theme;
use finder::Finder;
use popup::Popup;
use token::{Token, TokenKind};

pub(crate) use commands::CommandEntry;
pub(crate) use paths::TabCompletes;

/// Completion of commands, references and paths, with its list.
pub(crate) struct Completion {
    root: PathBuf,
    on_ready: Arc<dyn Fn() + Send + Sync>,
    commands: Vec<CommandEntry>,
    finder: Option<Finder>,
    popup: Popup,
    /// The text that the list completes.
    token: Option<Token>,
    /// More results may follow.
    is_searching: bool,
    /// Start of the token for which the list was dismissed, and of the one for which Tab requested
    /// it.
    dismissed: Option<usize>,
    requested: Option<usize>,
    tab_completes: TabCompletes,
}

impl std::fmt::Debug for Completion {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Completion")
            .field("token", &self.token)
            .field("popup", &self.popup)
            .finish_non_exhaustive()
    }
}

impl Completion {
    /// Completes files below `root`. `on_ready` is called on another thread when
    /// [`Completion::update`] would show new results.
    pub(crate) fn new(root: PathBuf, on_ready: impl Fn() + Send + Sync + 'static) -> Self {
        Self {
            root,
            on_ready: Arc::new(on_ready),
            commands: Vec::new(),
            finder: None,
            popup: Popup::default(),
            token: None,
            is_searching: false,
            dismissed: None,
            requested: None,
            tab_completes: TabCompletes::Words,
        }
    }

    /// Sets the commands, in display order.
    pub(crate) fn set_commands(&mut self, commands: Vec<CommandEntry>) {
        self.commands = commands;
        // The next update searches again.
        if self
            .token
            .as_ref()
            .is_some_and(|token| token.kind == TokenKind::Command)
        {
            self.token = None;
        }
    }

    /// Sets what Tab completes when no list is open.
    pub(crate) fn set_tab(&mut self, completes: TabCompletes) {
        self.tab_completes = completes;
    }

    /// Reads the text before the cursor; must be called after every change and when results are
    /// ready.
    pub(crate) fn update(&mut self, editor: &Editor) {
        let before = editor.before_cursor();
        let start = |token: &Token| before.len() - token.length;
        let mut token = Token::before(before);
        if token.is_none() && self.requested.is_some() {
            token = Token::word(before).filter(|token| self.requested == Some(start(token)));
        }
        let Some(token) = token else {
            self.dismissed = None;
            self.close();
            return;
        };
        if self.dismissed == Some(start(&token)) {
            self.close();
            return;
        }
        self.dismissed = None;
        if self.token.as_ref() != Some(&token) {
            self.search(token);
        }
        self.collect();
    }

    /// Reports whether the list is open.
    pub(crate) fn is_open(&self) -> bool {
        !self.popup.is_empty()
    }

    /// Reports whether more results may follow.
    pub(crate) fn is_searching(&self) -> bool {
        self.is_searching
    }

    /// Handles a key if the list or Tab needs it. Enter on a command without required arguments
    /// completes it but returns false, so that the command is sent.
    pub(crate) fn key(&mut self, key: KeyEvent, editor: &mut Editor) -> bool {
        if key.kind == KeyEventKind::Release {
            return false;
        }
        if !self.is_open() {
            return key.code == KeyCode::Tab && key.modifiers.is_empty() && self.tab(editor);
        }
        match (key.code, key.modifiers) {
            (KeyCode::Up, KeyModifiers::NONE) | (KeyCode::Char('p'), KeyModifiers::CONTROL) => {
                self.popup.step(-1)
            }
            (KeyCode::Down, KeyModifiers::NONE) | (KeyCode::Char('n'), KeyModifiers::CONTROL) => {
                self.popup.step(1)
            }
            (KeyCode::PageUp, KeyModifiers::NONE) => self.popup.step(-self.popup.page()),
            (KeyCode::PageDown, KeyModifiers::NONE) => self.popup.step(self.popup.page()),
            (KeyCode::Tab, KeyModifiers::NONE) => {
                self.accept(editor, ChosenBy::Tab);
            }
            (KeyCode::Enter, KeyModifiers::NONE) => {
                return self.accept(editor, ChosenBy::Enter) == Accepted::Incomplete;
            }
            (KeyCode::Esc, _) => {
                let length = self.token.as_ref().map_or(0, |token| token.length);
                self.dismissed = Some(editor.before_cursor().len().saturating_sub(length));
                self.close();
            }
            _ => return false,
        }
        true
    }

    /// Rows of the list.
    pub(crate) fn height(&self) -> u16 {
        self.popup.height()
    }

    /// Draws the list from the top of an area.
    pub(crate) fn draw(&self, area: Rect, buf: &mut Buffer, theme: &Theme) {
        self.popup.draw(area, buf, theme);
    }

    fn close(&mut self) {
        self.popup = Popup::default();
        self.token = None;
        self.requested = None;
        self.is_searching = false;
    }

    fn search(&mut self, token: Token) {
        match token.kind {
            TokenKind::Command => self.search_commands(&token.query),
            TokenKind::Word => self.search_words(&token),
            TokenKind::Reference => self.search_files(&token),
        }
        self.token = Some(token);
    }

    fn search_files(&mut self, token: &Token) {
        let begins = self
            .token
            .as_ref()
            .is_none_or(|known| known.kind != TokenKind::Reference);
        if begins {
            self.popup = Popup::default();
        } else {
            // Until results arrive, only the entries that still match are shown, because a choice
            // must match the current text.
            let names = self.popup.names();
            let best = matching::best_paths(&names, &token.query, &|| false).unwrap_or_default();
            let fitting = best
                .positions
                .iter()
                .filter_map(|position| names.get(*position));
            let entries = paths::entries(fitting.map(ToString::to_string).collect(), &token.query);
            self.popup.set(entries, best.total);
        }
        if self.finder.is_none() {
            self.finder = Finder::start(self.root.clone(), self.on_ready.clone()).ok();
        }
        if let Some(finder) = &mut self.finder {
            self.is_searching = true;
            finder.ask(&token.query, begins);
        }
    }

    fn search_commands(&mut self, query: &str) {
        let (entries, total) = commands::entries(&self.commands, query);
        self.popup.set(entries, total);
    }

    fn search_words(&mut self, token: &Token) {
        let paths = paths::starting(&token.query, &self.root);
        let total = paths.len();
        self.popup.set(paths::entries(paths, ""), total);
    }

    /// Shows results that have arrived.
    fn collect(&mut self) {
        let Some(token) = self
            .token
            .as_ref()
            .filter(|token| token.kind == TokenKind::Reference)
        else {
            return;
        };
        let Some(found) = self.finder.as_ref().and_then(Finder::found) else {
            return;
        };
        self.is_searching = !found.is_complete;
        self.popup
            .update_entries(paths::entries(found.paths, &token.query), found.total);
    }

    /// Inserts the selected entry.
    fn accept(&mut self, editor: &mut Editor, with: ChosenBy) -> Accepted {
        let (Some(token), Some(entry)) = (self.token.clone(), self.popup.selected().cloned())
        else {
            return Accepted::Incomplete;
        };
        if token.kind == TokenKind::Command {
            let is_whole = with == ChosenBy::Enter && !entry.hint.starts_with('<');
            let has_space = editor.after_cursor().starts_with(char::is_whitespace);
            let space = if is_whole || has_space { "" } else { " " };
            editor.replace_around_cursor(token.length, 0, &format!("{}{space}", entry.name));
            self.close();
            return if is_whole {
                Accepted::Complete
            } else {
                Accepted::Incomplete
            };
        }
        let was_written = editor
            .before_cursor()
            .ends_with(&format!("@{}", entry.name))
            && !token.is_quoted;
        paths::write(editor, &token, &entry.name);
        if token.kind == TokenKind::Word {
            self.requested = None;
        }
        self.token = None;
        self.popup = Popup::default();
        self.update(editor);
        if was_written {
            Accepted::Complete
        } else {
            Accepted::Incomplete
        }
    }

    /// Tab without a list: completes the path before the cursor as far as it is unambiguous, and
    /// lists the remaining choices.
    fn tab(&mut self, editor: &mut Editor) -> bool {
        if self.is_searching {
            // Tab typed before the files were found must not reach other parts.
            return true;
        }
        match paths::complete(editor, &self.root, self.tab_completes) {
            paths::PathCompletion::Nothing => false,
            paths::PathCompletion::Whole => true,
            paths::PathCompletion::Partly(start) => {
                self.requested = Some(start);
                self.dismissed = None;
                self.update(editor);
                true
            }
        }
    }
}

/// The key of a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChosenBy {
    Tab,
    Enter,
}

/// The state after an insertion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Accepted {
    /// Complete: the text was there already, or needs nothing more.
    Complete,
    /// More may be typed.
    Incomplete,
}
