use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;
use ratatui::style::Modifier;
use ratatui::text::Line;

use super::*;
use crate::overlay::picker::{Item, Picked, Picker, PickerFrame};
use crate::overlay::search::Matching;

/// A name that counts its layouts.
struct Name(String, Arc<AtomicUsize>);

impl Item for Name {
    fn words(&self) -> String {
        self.0.clone()
    }

    fn line(&self, _columns: u16, _theme: &Theme) -> Line<'static> {
        self.1.fetch_add(1, Ordering::Relaxed);
        Line::raw(self.0.clone())
    }
}

/// A picker as an overlay.
struct Names(Picker<Name>);

impl Overlay for Names {
    fn key(&mut self, key: KeyEvent) -> Step {
        match self.0.key(key) {
            Picked::Close => Step::Close,
            _ => Step::Stay,
        }
    }

    fn draw(&mut self, area: Rect, buf: &mut Buffer, theme: &Theme) -> Option<Position> {
        let outfit = PickerFrame {
            title: "Names",
            note: "",
            empty: "no names",
            hints: &[],
        };
        self.0.draw(area, buf, theme, &outfit)
    }
}

fn names(names: impl IntoIterator<Item = String>, matching: Matching) -> (Names, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let items = names.into_iter().map(|name| Name(name, Arc::clone(&count)));
    (Names(Picker::new(items.collect(), matching)), count)
}

fn words(list: &[&str], matching: Matching) -> Names {
    names(list.iter().map(|&word| word.to_owned()), matching).0
}

#[test]
fn of_ten_thousand_only_those_on_the_screen_are_laid_out() {
    let (mut picker, count) = names((0..10_000).map(|n| format!("name {n}")), Matching::Fuzzy);
    for keys in ["End", "PgUp", "Home", "Down", "9 9", "Backspace Backspace"] {
        press(&mut picker, keys);
        count.store(0, Ordering::Relaxed);
        screen(&mut picker, 80, 24);
        let laid_out = count.load(Ordering::Relaxed);
        assert!((1..=24).contains(&laid_out), "{laid_out} after {keys}");
    }
}

#[test]
fn typing_narrows_and_the_best_match_is_selected() {
    let list = [
        "anthropic/claude-sonnet",
        "openai/gpt",
        "openrouter/anthropic/claude",
        "Ärger",
    ];
    for (typed, selected, count) in [
        ("", "anthropic/claude-sonnet", 4),
        ("gpt", "openai/gpt", 1),
        ("opcl", "openrouter/anthropic/claude", 2),
        ("GPT", "openai/gpt", 1),
        ("arger", "Ärger", 1),
        ("claude open", "openrouter/anthropic/claude", 2),
        ("!gpt", "", 0),
    ] {
        let mut picker = words(&list, Matching::Fuzzy);
        type_in(&mut picker, typed);
        let found = picker.0.selected().map_or("", |name| name.0.as_str());
        assert_eq!((found, picker.0.len()), (selected, count), "{typed}");
    }
}

#[test]
fn prose_is_searched_by_words_and_keeps_its_order() {
    let list = [
        "fix the parser",
        "a fox and a partner",
        "parsers: fix them all",
    ];
    let mut picker = words(&list, Matching::Words);
    type_in(&mut picker, "fix pars");
    assert_eq!(picker.0.len(), 2);
    assert_eq!(
        picker.0.selected().map(|name| name.0.as_str()),
        Some("fix the parser")
    );
}

#[test]
fn keys_and_what_is_selected() {
    let list = ["a", "b", "c", "d"];
    for (keys, selected) in [
        ("Down", "b"),
        ("Up", "d"),
        ("Up Down", "a"),
        ("End", "d"),
        ("End Home", "a"),
        ("Ctrl-N Ctrl-N Ctrl-P", "b"),
        ("PgDn", "d"),
        ("End c", "c"),
        ("c Backspace", "a"),
    ] {
        let mut picker = words(&list, Matching::Fuzzy);
        screen(&mut picker, 80, 24);
        press(&mut picker, keys);
        assert_eq!(picker.0.selected().unwrap().0, selected, "{keys}");
    }
}

#[test]
fn what_was_typed_is_underlined() {
    let mut picker = words(&["日本 gpt", "claude"], Matching::Fuzzy);
    type_in(&mut picker, "本pt");
    let area = Rect::new(0, 0, 40, 10);
    let mut buf = Buffer::empty(area);
    picker.draw(area, &mut buf, &theme());
    let marked = area
        .positions()
        .filter(|&at| buf[at].modifier.contains(Modifier::UNDERLINED));
    let marked: String = marked.map(|at| buf[at].symbol()).collect();
    assert_eq!(marked.replace(' ', ""), "本pt");
}

#[test]
fn screens() {
    let list: Vec<String> = (1..=40).map(|n| format!("number {n}")).collect();
    let (mut picker, _) = names(list, Matching::Fuzzy);
    press(&mut picker, "End Up");
    insta::assert_snapshot!("picker", at_all_widths(&mut picker));
    type_in(&mut picker, "37");
    insta::assert_snapshot!("picker_filtered", screen(&mut picker, 40, 12));
    type_in(&mut picker, "x");
    insta::assert_snapshot!("picker_without_match", screen(&mut picker, 40, 8));
    insta::assert_snapshot!(
        "picker_tiny",
        screen(
            &mut words(&["a", "b", "c", "d", "e"], Matching::Words),
            20,
            6
        )
    );
}

proptest! {
    #[test]
    fn the_selected_row_is_always_on_the_screen(
        length in 0usize..60,
        keys in prop::collection::vec((0usize..9, 1u16..50, 1u16..20), 0..40),
    ) {
        let (mut picker, _) = names((0..length).map(|n| format!("row {n}")), Matching::Fuzzy);
        for (what, width, height) in keys {
            let names = ["Up", "Down", "PgUp", "PgDn", "Home", "End", "1", "Backspace", "Ctrl-U"];
            press(&mut picker, names[what]);
            let shown = screen(&mut picker, width, height);
            if picker.0.selected().is_some() && height > 1 && width > 2 {
                prop_assert!(shown.contains('❯'), "{}", shown);
            }
        }
    }
}
