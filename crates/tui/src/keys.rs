//! The keys of the chat: one table that maps keys to actions and that the help page and the guide
//! are made from.

mod table;

pub(crate) use table::BINDINGS;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::Abilities;

/// An action of the chat as a whole. Other keys belong to the focused part of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    FollowUp,
    TakeBack,
    Interrupt,
    ClearOrQuit,
    QuitWhenEmpty,
    Suspend,
    PickModel,
    NextModel,
    PreviousModel,
    NextThinkingLevel,
    FoldThinking,
    FoldTools,
    ScrollUp,
    ScrollDown,
    ScrollToStart,
    ScrollToEnd,
    CopyAnswer,
    CopyCode,
    Help,
}

impl Action {
    /// Reports whether the action only changes the view of the conversation and is therefore
    /// available while a question is open.
    pub fn is_view_only(self) -> bool {
        matches!(
            self,
            Self::FoldThinking
                | Self::FoldTools
                | Self::ScrollUp
                | Self::ScrollDown
                | Self::ScrollToStart
                | Self::ScrollToEnd
        )
    }
}

/// A section of the help page and of the guide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Section {
    Talking,
    Writing,
    Reading,
    Models,
    Lists,
    Tree,
    Program,
}

/// The hosts with which a key works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hosts {
    Both,
    Session,
    Turns,
}

/// Keys and the effect they have.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Binding {
    pub section: Section,
    pub hosts: Hosts,
    /// The keys, as people write them: `Ctrl-A`, `Shift-Enter`.
    pub keys: &'static [&'static str],
    /// The action of the chat as a whole; `None` if another part of the program handles the keys.
    pub action: Option<Action>,
    /// The effect of the keys, as the help page and the guide describe it.
    pub description: &'static str,
}

impl Section {
    /// All sections, in the order of the help page.
    pub const ALL: [Self; 7] = [
        Self::Talking,
        Self::Writing,
        Self::Reading,
        Self::Models,
        Self::Lists,
        Self::Tree,
        Self::Program,
    ];

    /// The heading of the section.
    pub fn title(self) -> &'static str {
        match self {
            Self::Talking => "Talking",
            Self::Writing => "Writing",
            Self::Reading => "Reading",
            Self::Models => "Models",
            Self::Lists => "Lists and dialogs",
            Self::Tree => "The session tree",
            Self::Program => "The program",
        }
    }

    /// The rows of the section for a host with these abilities.
    pub fn bindings(self, abilities: Abilities) -> impl Iterator<Item = &'static Binding> {
        let is_listed = move |binding: &&Binding| {
            let hosts = match abilities {
                Abilities::Session => Hosts::Session,
                Abilities::Turns => Hosts::Turns,
            };
            binding.section == self && [Hosts::Both, hosts].contains(&binding.hosts)
        };
        BINDINGS.iter().filter(is_listed)
    }
}

/// The action of the chat as a whole that a key stands for.
pub(crate) fn action(key: KeyEvent) -> Option<Action> {
    let pressed = normalise(key);
    BINDINGS.iter().find_map(|binding| {
        let action = binding.action?;
        let mut keys = binding.keys.iter().filter_map(|name| parse(name));
        keys.any(|key| key == pressed).then_some(action)
    })
}

/// Unifies the spellings of a key: letters become lower case, with Shift if they were upper case.
fn normalise(key: KeyEvent) -> (KeyCode, KeyModifiers) {
    let known = KeyModifiers::CONTROL | KeyModifiers::ALT | KeyModifiers::SHIFT;
    let modifiers = key.modifiers & known;
    match key.code {
        KeyCode::Char(letter) if letter.is_ascii_uppercase() => (
            KeyCode::Char(letter.to_ascii_lowercase()),
            modifiers | KeyModifiers::SHIFT,
        ),
        KeyCode::BackTab => (KeyCode::Tab, modifiers | KeyModifiers::SHIFT),
        code => (code, modifiers),
    }
}

/// Parses the name of a key; `None` if it names something else, such as a sign at the start of a
/// line.
pub(crate) fn parse(name: &str) -> Option<(KeyCode, KeyModifiers)> {
    let mut modifiers = KeyModifiers::NONE;
    let mut rest = name;
    loop {
        let (modifier, after) = match rest {
            _ if rest.starts_with("Ctrl-") => (KeyModifiers::CONTROL, &rest[5..]),
            _ if rest.starts_with("Alt-") => (KeyModifiers::ALT, &rest[4..]),
            _ if rest.starts_with("Shift-") => (KeyModifiers::SHIFT, &rest[6..]),
            _ => break,
        };
        modifiers |= modifier;
        rest = after;
    }
    let code = match rest {
        "Enter" => KeyCode::Enter,
        "Esc" => KeyCode::Esc,
        "Tab" => KeyCode::Tab,
        "Up" => KeyCode::Up,
        "Down" => KeyCode::Down,
        "Left" => KeyCode::Left,
        "Right" => KeyCode::Right,
        "PgUp" => KeyCode::PageUp,
        "PgDn" => KeyCode::PageDown,
        "Home" => KeyCode::Home,
        "End" => KeyCode::End,
        "Backspace" => KeyCode::Backspace,
        "Delete" => KeyCode::Delete,
        "F1" => KeyCode::F(1),
        "Space" => KeyCode::Char(' '),
        _ => {
            let mut letters = rest.chars();
            match (letters.next(), letters.next()) {
                (Some(letter), None) => KeyCode::Char(letter.to_ascii_lowercase()),
                _ => return None,
            }
        }
    };
    Some((code, modifiers))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::editor::{Editor, EditorOutcome};

    fn key(name: &str) -> KeyEvent {
        let (code, modifiers) = parse(name).unwrap();
        KeyEvent::new(code, modifiers)
    }

    #[test]
    fn every_key_of_the_table_has_its_action() {
        for binding in BINDINGS.iter().filter(|binding| binding.action.is_some()) {
            for name in binding.keys {
                assert_eq!(action(key(name)), binding.action, "{name}");
            }
        }
    }

    #[test]
    fn no_key_is_listed_twice_in_a_section() {
        let both = [Abilities::Session, Abilities::Turns];
        let sections = both
            .into_iter()
            .flat_map(|host| Section::ALL.map(|section| (section, host)));
        for (section, host) in sections {
            let mut names: Vec<&str> = section
                .bindings(host)
                .flat_map(|binding| binding.keys)
                .copied()
                .collect();
            assert!(!names.is_empty() || host == Abilities::Turns, "{section:?}");
            let all = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), all, "{section:?}");
        }
    }

    #[test]
    fn the_editor_handles_its_listed_keys() {
        let names = Section::Writing
            .bindings(Abilities::Session)
            .flat_map(|binding| binding.keys);
        // These belong to completion.
        let keys = names.filter(|name| !["Tab", "/", "@"].contains(name));
        for (name, pressed) in keys.filter_map(|name| Some((name, parse(name)?))) {
            let mut editor = Editor::new();
            editor.set_text("one two\nthree four");
            editor.step_back(4);
            let outcome = editor.key(KeyEvent::new(pressed.0, pressed.1));
            assert_ne!(outcome, EditorOutcome::Ignored, "{name}");
        }
    }

    /// The keys as docs/chat.md lists them.
    fn table(section: Section) -> String {
        let rows = section.bindings(Abilities::Session).map(|binding| {
            let keys = binding.keys.iter().map(|key| format!("`{key}`"));
            let keys: Vec<String> = keys.collect();
            format!("| {} | {} |\n", keys.join(" "), binding.description)
        });
        let rows: String = rows.collect();
        format!(
            "### {}\n\n| keys | effect |\n|---|---|\n{rows}",
            section.title()
        )
    }

    #[test]
    fn the_guide_lists_the_same_keys() {
        let guide = include_str!("../../../docs/chat.md");
        let tables = Section::ALL.map(table).join("\n");
        assert!(
            guide.contains(&tables),
            "docs/chat.md should contain:\n{tables}"
        );
    }

    #[test]
    fn terminals_spell_keys_in_several_ways() {
        let capital = KeyEvent::new(
            KeyCode::Char('P'),
            KeyModifiers::CONTROL | KeyModifiers::SHIFT,
        );
        assert_eq!(action(capital), Some(Action::PreviousModel));
        let small = KeyEvent::new(
            KeyCode::Char('p'),
            KeyModifiers::CONTROL | KeyModifiers::SHIFT,
        );
        assert_eq!(action(small), Some(Action::PreviousModel));
        let back = KeyEvent::new(KeyCode::BackTab, KeyModifiers::SHIFT);
        assert_eq!(action(back), Some(Action::NextThinkingLevel));
        let back = KeyEvent::new(KeyCode::BackTab, KeyModifiers::NONE);
        assert_eq!(action(back), Some(Action::NextThinkingLevel));
    }

    #[test]
    fn plain_letters_have_no_action() {
        for letter in ('a'..='z').chain('A'..='Z') {
            assert_eq!(action(KeyEvent::from(KeyCode::Char(letter))), None);
        }
        assert_eq!(action(KeyEvent::from(KeyCode::Enter)), None);
    }
}
