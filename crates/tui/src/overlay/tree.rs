//! The session tree: the branches of the conversation, to continue from any entry.

mod draw;
mod entry;
mod read;
mod rows;

use std::collections::HashSet;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use serde_json::Value;
use serde_json::value::RawValue;

use super::input::{Input, InputEffect};
use super::list::Cursor;
use super::search::{Matching, Search};
use super::{Choice, Overlay, Step, TreeAction};
use crate::Theme;
use crate::text::one_line;
use entry::Summary;
use read::Node;
use rows::{TreeMode, TreeRow};

/// Entries above a result that are searched for its call.
const CALL_SEARCH_DEPTH: usize = 16;

/// The entries of a session, to choose one of them.
pub(crate) struct TreeView {
    json: Box<RawValue>,
    nodes: Vec<Node>,
    /// The entries from the root to the leaf.
    path: HashSet<usize>,
    leaf: Option<usize>,
    /// The entry marked as the current position: the leaf, or its nearest ancestor that the mode
    /// shows.
    current: Option<usize>,
    mode: TreeMode,
    rows: Vec<TreeRow>,
    /// The largest number of rows so far, so that the panel does not shrink.
    tallest: usize,
    cursor: Cursor,
    /// The text to search for.
    search: Input,
    /// The texts to search in, created at the first search.
    haystacks: Vec<String>,
    typing: Typing,
    #[cfg(test)]
    pub(super) laid_out: usize,
}

/// The target of typed letters.
enum Typing {
    /// They are commands.
    Nowhere,
    /// The search.
    Search,
    /// The name of an entry.
    Label(usize, Input),
}

impl TreeView {
    /// Creates a view of the answer to `Command::GetTree`, positioned at `leaf_id`.
    pub fn new(tree: Box<RawValue>, leaf_id: Option<&str>) -> Result<Self, String> {
        let nodes = read::read(tree.get())?;
        let leaf = leaf_id.and_then(|id| nodes.iter().rposition(|node| node.id == id));
        let up = std::iter::successors(leaf, |&at| nodes[at].parent);
        let path = up.collect();
        let mut view = Self {
            json: tree,
            nodes,
            path,
            leaf,
            current: None,
            mode: TreeMode::Conversation,
            rows: Vec::new(),
            tallest: 0,
            cursor: Cursor::default(),
            search: Input::default(),
            haystacks: Vec::new(),
            typing: Typing::Nowhere,
            #[cfg(test)]
            laid_out: 0,
        };
        view.lay_out(leaf);
        Ok(view)
    }

    /// Reports whether no entry is visible.
    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Updates the visible rows, and selects `node` or its nearest visible ancestor.
    fn lay_out(&mut self, node: Option<usize>) {
        let search = Search::new(self.search.text(), Matching::Words);
        if search.is_some() && self.haystacks.is_empty() {
            self.haystacks = (0..self.nodes.len()).map(|at| self.words(at)).collect();
        }
        let found = search.map(|mut search| search.find(&self.haystacks));
        let found: Option<HashSet<usize>> = found.map(|found| found.into_iter().collect());
        self.rows = rows::rows(&self.nodes, self.mode, found.as_ref());
        self.tallest = self.tallest.max(self.rows.len());
        let mut up = std::iter::successors(self.leaf, |&at| self.nodes[at].parent);
        self.current = up.find(|&at| self.mode.shows(&self.nodes[at]));
        let mut row_of = vec![None; self.nodes.len()];
        for (row, seen) in self.rows.iter().enumerate() {
            row_of[seen.node] = Some(row);
        }
        let mut up = std::iter::successors(node, |&at| self.nodes[at].parent);
        let row = up.find_map(|at| row_of[at]);
        self.cursor.select(row.unwrap_or_default());
    }

    fn words(&self, at: usize) -> String {
        let node = &self.nodes[at];
        let label = node.label.as_deref().unwrap_or_default();
        format!("{} {label}", self.summary(at).words())
    }

    fn summary(&self, at: usize) -> Summary {
        let entry = self.entry(at);
        let call = entry["message"]["toolCallId"].as_str();
        let call = call.and_then(|id| self.call_above(at, id));
        Summary::of(&entry, call.as_ref())
    }

    fn entry(&self, at: usize) -> Value {
        serde_json::from_str(self.json_of(at)).unwrap_or_default()
    }

    fn json_of(&self, at: usize) -> &str {
        &self.json.get()[self.nodes[at].json.clone()]
    }

    /// The call that a result answers; it is above the result, with other results between them.
    fn call_above(&self, at: usize, id: &str) -> Option<Value> {
        let up = std::iter::successors(self.nodes[at].parent, |&at| self.nodes[at].parent);
        let mut answers = up.take(CALL_SEARCH_DEPTH).filter(|&at| {
            let json = self.json_of(at);
            json.contains("\"toolCall\"") && json.contains(id)
        });
        answers.find_map(|at| entry::call(&self.entry(at), id))
    }

    fn selected(&self) -> Option<usize> {
        let row = self.rows.get(self.cursor.selected())?;
        Some(row.node)
    }

    fn choice(&self, at: usize, action: TreeAction) -> Choice {
        let node = &self.nodes[at];
        Choice::Tree {
            entry_id: node.id.clone(),
            author: node.kind.author(),
            action,
        }
    }

    fn choose(&self, action: TreeAction) -> Step {
        match self.selected() {
            Some(at) => Step::Chosen(self.choice(at, action)),
            None => Step::Stay,
        }
    }

    fn label_key(&mut self, key: KeyEvent) -> Step {
        let Typing::Label(at, input) = &mut self.typing else {
            return Step::Stay;
        };
        let at = *at;
        match key.code {
            KeyCode::Esc => self.typing = Typing::Nowhere,
            KeyCode::Enter => {
                let name = one_line(input.text());
                let name = (!name.is_empty()).then_some(name);
                self.typing = Typing::Nowhere;
                self.nodes[at].label.clone_from(&name);
                self.haystacks.clear();
                self.lay_out(Some(at));
                return Step::Asked(self.choice(at, TreeAction::Label(name)));
            }
            _ => {
                input.key(key);
            }
        }
        Step::Stay
    }

    fn search_key(&mut self, key: KeyEvent) -> Step {
        match key.code {
            KeyCode::Esc => {
                let selected = self.selected();
                self.search = Input::default();
                self.typing = Typing::Nowhere;
                self.lay_out(selected);
            }
            KeyCode::Enter => self.typing = Typing::Nowhere,
            _ => {
                let selected = self.selected();
                if self.search.key(key) == InputEffect::Changed {
                    self.lay_out(selected);
                }
            }
        }
        Step::Stay
    }

    fn command_key(&mut self, key: KeyEvent) -> Step {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if control => return Step::Close,
            KeyCode::Tab => self.change_mode(),
            KeyCode::Char('o') if control => self.change_mode(),
            KeyCode::Char(_) if control => {}
            KeyCode::Enter => return self.choose(TreeAction::Jump),
            KeyCode::Char('s') => return self.choose(TreeAction::JumpWithSummary),
            KeyCode::Char('f') => return self.choose(TreeAction::Fork),
            KeyCode::Char('l') => {
                if let Some(at) = self.selected() {
                    let name = self.nodes[at].label.as_deref().unwrap_or_default();
                    self.typing = Typing::Label(at, Input::with_text(name));
                }
            }
            KeyCode::Char('/') => self.typing = Typing::Search,
            KeyCode::Left => {
                let branch = self
                    .rows
                    .get(self.cursor.selected())
                    .and_then(|row| row.branch);
                self.cursor.select(branch.unwrap_or_default());
            }
            KeyCode::Right => {
                let after = self.cursor.selected() + 1;
                let next = self
                    .rows
                    .iter()
                    .skip(after)
                    .position(|row| row.start.is_some());
                if let Some(next) = next {
                    self.cursor.select(after + next);
                }
            }
            KeyCode::Esc if !self.search.text().is_empty() => return self.search_key(key),
            KeyCode::Esc => return Step::Close,
            _ => {}
        }
        Step::Stay
    }

    fn change_mode(&mut self) {
        let selected = self.selected().or(self.leaf);
        self.mode = self.mode.next();
        self.lay_out(selected);
    }
}

impl Overlay for TreeView {
    fn key(&mut self, key: KeyEvent) -> Step {
        if matches!(self.typing, Typing::Label(..)) {
            return self.label_key(key);
        }
        if self.cursor.key(key, self.rows.len()) {
            return Step::Stay;
        }
        match self.typing {
            Typing::Search => self.search_key(key),
            _ => self.command_key(key),
        }
    }

    fn wheel(&mut self, rows: isize) {
        self.cursor.scroll_by(rows, self.rows.len());
    }

    fn paste(&mut self, text: &str) {
        match &mut self.typing {
            Typing::Nowhere => {}
            Typing::Label(_, name) => name.paste(text),
            Typing::Search => {
                self.search.paste(text);
                let selected = self.selected();
                self.lay_out(selected);
            }
        }
    }

    fn draw(&mut self, area: Rect, buf: &mut Buffer, theme: &Theme) -> Option<Position> {
        self.paint(area, buf, theme)
    }
}
