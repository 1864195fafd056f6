use pinion_session::{ContextUsage, Stats, TokenTotals};
use proptest::prelude::*;

use super::*;
use crate::Abilities;
use crate::keys::{BINDINGS, Hosts};
use crate::overlay::{CommandHelp, Page};

fn commands() -> Vec<CommandHelp> {
    let command = |name: &str, does: &str| CommandHelp {
        name: name.into(),
        does: does.into(),
    };
    vec![
        command(
            "/compact [what to keep]",
            "summarise the conversation so far",
        ),
        command("/review", "a template of this project"),
    ]
}

fn stats() -> Stats {
    Stats {
        session_file: Some("/home/ada/.pi/agent/sessions/--engine--/1.jsonl".into()),
        session_id: "0199a3c2-7c55-7d51-b0b6-9f3d2d4c1e11".into(),
        user_messages: 4,
        assistant_messages: 9,
        tool_calls: 7,
        tool_results: 7,
        total_messages: 20,
        tokens: TokenTotals {
            input: 12_345,
            output: 2_001,
            cache_read: 1_048_576,
            cache_write: 0,
            total: 1_062_922,
        },
        cost: 0.12345,
        context_usage: Some(ContextUsage::new(Some(24_000), 200_000)),
    }
}

#[test]
fn help_lists_every_key_by_scrolling() {
    let mut page = Page::help(Abilities::Session, &commands());
    let mut seen = screen(&mut page, 80, 24);
    for _ in 0..20 {
        press(&mut page, "PgDn");
        seen.push_str(&screen(&mut page, 80, 24));
    }
    for binding in BINDINGS
        .iter()
        .filter(|binding| binding.hosts != Hosts::Turns)
    {
        assert!(
            seen.contains(&binding.keys.join(", ")),
            "{:?}",
            binding.keys
        );
    }
    assert!(seen.contains("/review"));
    let end = screen(&mut page, 80, 24);
    press(&mut page, "Home End");
    assert_eq!(screen(&mut page, 80, 24), end);
    for key in ["Esc", "q", "Enter", "Ctrl-G", "Ctrl-C"] {
        assert_eq!(press(&mut page, key), Step::Close);
    }
}

#[test]
fn help_omits_the_tree_for_hosts_without_one() {
    let mut page = Page::help(Abilities::Turns, &[]);
    let shown = screen(&mut page, 80, 200);
    assert!(shown.contains("Enter, Tab"), "{shown}");
    for absent in ["tree", "model", "sessions", "steer"] {
        assert!(!shown.contains(absent), "{absent}: {shown}");
    }
}

#[test]
fn screens() {
    insta::assert_snapshot!(
        "help",
        at_all_widths(&mut Page::help(Abilities::Session, &commands()))
    );
    insta::assert_snapshot!(
        "statistics",
        at_all_widths(&mut Page::stats(&stats(), Some("engine"), None))
    );
    insta::assert_snapshot!(
        "help_tiny",
        screen(&mut Page::help(Abilities::Session, &[]), 20, 6)
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn any_size_and_key_works(keys in prop::collection::vec((0usize..7, 0u16..130, 0u16..40), 0..30)) {
        let mut page = Page::help(Abilities::Session, &commands());
        for (what, width, height) in keys {
            press(&mut page, ["Up", "Down", "PgUp", "PgDn", "Home", "End", "x"][what]);
            screen(&mut page, width, height);
        }
    }
}
