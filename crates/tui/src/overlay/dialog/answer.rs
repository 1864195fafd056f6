//! The kinds of answers: an option, yes or no, a line, a text.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use pinion_text::start;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};
use serde_json::{Value, json};

use super::UserActivity;
use crate::Theme;
use crate::editor::{Editor, EditorOutcome};
use crate::overlay::input::{self, Input};
use crate::overlay::panel::{clipped, row_text};
use crate::overlay::picker::{Item, Picked, Picker, Prompt, Selection};
use crate::overlay::search::Matching;
use crate::request::DialogKind;
use crate::text::{sanitise, width};

/// Longest list that shows its filter only after the user typed.
const SHORT_LIST: usize = 7;
/// Smallest height of an editor, in rows.
const MIN_EDITOR_ROWS: usize = 3;
/// Characters of an option that are shown.
const MAX_SHOWN: usize = 1_000;

pub(super) enum Answer {
    Select(Picker<Choice>),
    Confirm(Picker<Choice>),
    Input { line: Input, placeholder: String },
    Editor(Box<Editor>),
}

/// One option of a choice.
#[derive(Debug)]
pub(super) struct Choice {
    /// The answer it stands for.
    value: Value,
    shown: String,
}

impl Choice {
    fn option(value: String) -> Self {
        let shown = start(&value, MAX_SHOWN).replace(['\n', '\r'], " ");
        Self {
            shown: sanitise(&shown).into_owned(),
            value: json!({ "value": value }),
        }
    }

    fn confirmation(word: &str, confirmed: bool) -> Self {
        Self {
            shown: word.to_owned(),
            value: json!({ "confirmed": confirmed }),
        }
    }
}

impl Item for Choice {
    fn words(&self) -> String {
        self.shown.clone()
    }

    fn line(&self, columns: u16, theme: &Theme) -> Line<'static> {
        let text = Span::styled(self.shown.clone(), theme.text);
        Line::from(clipped(vec![text], columns.into()))
    }
}

impl Answer {
    pub fn new(kind: DialogKind, activity: UserActivity) -> Self {
        let selection = match activity {
            UserActivity::Idle => Selection::First,
            UserActivity::Writing => Selection::Nothing,
        };
        let picker = |choices, prompt| {
            let picker = Picker::new(choices, Matching::Fuzzy).with_prompt(prompt);
            picker.with_selection(selection)
        };
        match kind {
            DialogKind::Select(options) => {
                let prompt = match options.len() {
                    0..=SHORT_LIST => Prompt::Typed,
                    _ => Prompt::Shown,
                };
                let options = options.into_iter().map(Choice::option).collect();
                Self::Select(picker(options, prompt))
            }
            DialogKind::Confirm { .. } => {
                let choices = vec![
                    Choice::confirmation("Yes", true),
                    Choice::confirmation("No", false),
                ];
                Self::Confirm(picker(choices, Prompt::Typed))
            }
            DialogKind::Input { placeholder } => Self::Input {
                line: Input::default(),
                placeholder: sanitise(&placeholder.replace(['\n', '\r'], " ")).into_owned(),
            },
            DialogKind::Editor { prefill } => {
                let mut editor = Editor::new();
                editor.set_text(&prefill);
                Self::Editor(Box::new(editor))
            }
        }
    }

    /// The title in the rule when the question does not fit there.
    pub fn rule_title(&self) -> &'static str {
        match self {
            Self::Select(_) => "Choose",
            Self::Confirm(_) => "Confirm",
            Self::Input { .. } => "Answer",
            Self::Editor(_) => "Write",
        }
    }

    pub fn hints(&self) -> Vec<(&'static str, &'static str)> {
        match self {
            Self::Select(picker) if picker.has_no_selection() => {
                vec![("↑↓", "choose one first"), ("Esc", "cancel")]
            }
            Self::Confirm(picker) if picker.has_no_selection() => vec![
                ("y", "yes"),
                ("n", "no"),
                ("↑↓", "choose one first"),
                ("Esc", "cancel"),
            ],
            Self::Select(_) => vec![("↑↓", "move"), ("Enter", "choose"), ("Esc", "cancel")],
            Self::Confirm(_) => vec![
                ("y", "yes"),
                ("n", "no"),
                ("Enter", "choose"),
                ("Esc", "cancel"),
            ],
            Self::Input { .. } => vec![("Enter", "answer"), ("Esc", "cancel")],
            Self::Editor(_) => vec![
                ("Enter", "answer"),
                ("Esc", "cancel"),
                ("Shift-Enter Ctrl-J", "new line"),
            ],
        }
    }

    /// Reports whether it is a list of which a screen may show only a part.
    pub fn is_long(&self) -> bool {
        matches!(self, Self::Select(picker) if picker.len() > SHORT_LIST)
    }

    /// Reports whether it is a text editor, which uses all keys that move.
    pub fn is_text(&self) -> bool {
        matches!(self, Self::Editor(_))
    }

    /// The selected option, if a row cannot show all of it.
    pub fn long_selection(&self, columns: u16) -> Option<&str> {
        let Self::Select(picker) = self else {
            return None;
        };
        let shown = &picker.selected()?.shown;
        let row = row_text(Rect::new(0, 0, columns, 1));
        (width(shown) > usize::from(row.width)).then_some(shown)
    }

    /// Rows it takes if there is room.
    pub fn rows(&self, columns: u16) -> usize {
        match self {
            Self::Select(picker) | Self::Confirm(picker) => picker.rows(),
            Self::Input { .. } => 1,
            Self::Editor(editor) => usize::from(editor.height(columns)).max(MIN_EDITOR_ROWS),
        }
    }

    /// Rows it takes when the question is long.
    pub fn min_rows(&self) -> usize {
        match self {
            Self::Select(picker) | Self::Confirm(picker) => picker.rows().min(4),
            Self::Input { .. } => 1,
            Self::Editor(_) => MIN_EDITOR_ROWS,
        }
    }

    /// Handles a key. Returns the answer once it is complete.
    pub fn key(&mut self, key: KeyEvent) -> Option<Value> {
        match self {
            Self::Select(picker) => match picker.key(key) {
                Picked::Chosen => picker.selected().map(|choice| choice.value.clone()),
                _ => None,
            },
            Self::Confirm(picker) => {
                let plain = !key
                    .modifiers
                    .intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
                match key.code {
                    KeyCode::Char('y' | 'Y') if plain => Some(json!({ "confirmed": true })),
                    KeyCode::Char('n' | 'N') if plain => Some(json!({ "confirmed": false })),
                    KeyCode::Char(_) => None,
                    _ => match picker.key(key) {
                        Picked::Chosen => picker.selected().map(|choice| choice.value.clone()),
                        _ => None,
                    },
                }
            }
            Self::Editor(editor) => match editor.key(key) {
                EditorOutcome::Submit => Some(json!({ "value": editor.take() })),
                _ => None,
            },
            Self::Input { line, .. } => {
                if key.code == KeyCode::Enter {
                    return Some(json!({ "value": line.text() }));
                }
                line.key(key);
                None
            }
        }
    }

    pub fn paste(&mut self, text: &str) {
        match self {
            Self::Select(picker) => picker.paste(text),
            Self::Confirm(_) => {}
            Self::Input { line, .. } => line.paste(text),
            Self::Editor(editor) => editor.paste(text),
        }
    }

    pub fn draw(&mut self, area: Rect, buf: &mut Buffer, theme: &Theme) -> Option<Position> {
        match self {
            Self::Select(picker) | Self::Confirm(picker) => {
                picker.draw_inside(area, buf, theme, "no options")
            }
            Self::Input { line, placeholder } => {
                let look = input::Line {
                    prompt: "> ",
                    placeholder,
                    theme,
                };
                line.draw(area, buf, &look)
            }
            Self::Editor(editor) => editor.draw(area, buf, theme, true),
        }
    }
}
