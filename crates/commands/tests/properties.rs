//! Properties of every file and every command line.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod common;

use common::{parse, read};
use pinion_commands::{Command, World, parse_date};
use proptest::prelude::*;

fn error_of(text: &str) -> String {
    let command = read(text).unwrap();
    command.check_templates().unwrap_err().to_string()
}

fn everything() -> Command {
    read("name: x\nflags:\n- {name: s, shortFlag: s}\n- {name: b, type: bool, shortFlag: b}\n- {name: i, type: int}\n- {name: l, type: stringList}\n- {name: k, type: keyValue}\n- {name: d, type: date}\narguments: [{name: rest, type: stringList}]\nprompt: hi\n").unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn no_file_makes_the_reader_fall_over(text in any::<String>()) {
        let _ = read(&text);
    }

    #[test]
    fn nor_does_one_of_likely_lines(
        lines in prop::collection::vec(
            prop::sample::select(vec![
                "name: x", "prompt: |", "  {{ .a }}", "  {{ bad", "flags:", "  - name: a", "    type: int", "    default: [1]",
                "messages: [a]", "- b", "arguments: {}", "system-prompt: \"{{ x \\n}}\"", "prompt: >-", "\ttab", "'", "&a", "*a", "...",
            ]),
            0..12,
        )
    ) {
        if let Ok(command) = read(&lines.join("\n")) {
            let _ = command.check_templates();
            if let Ok(parsed) = parse(&command, &[]) {
                let _ = command.render(&parsed, &World::new("/nowhere"));
            }
        }
    }

    #[test]
    fn no_command_line_makes_the_parser_fall_over(words in prop::collection::vec(
        prop_oneof![
            any::<String>(),
            prop::sample::select(vec!["--s", "--b", "--i", "--l=a,\"b", "--k", "-", "--", "-sb", "-b=", "--=", "---", "--d", "@x", "-é"])
                .prop_map(str::to_owned),
        ],
        0..8,
    )) {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let _ = parse(&everything(), &words);
    }

    #[test]
    fn plain_words_are_the_arguments(words in prop::collection::vec("[a-z ,=:]{1,8}", 1..6)) {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let parsed = parse(&everything(), &words).unwrap();
        let expected = pinion_commands::templates::Value::texts(words);
        prop_assert_eq!(&parsed.values["rest"], &expected);
    }

    #[test]
    fn no_text_makes_dates_fall_over(text in any::<String>()) {
        let _ = parse_date(&text, &common::now());
    }

    /// A mistake in a block is found in its line and column, however the block is indented.
    #[test]
    fn mistakes_in_blocks_are_found(
        before in prop::collection::vec("[a-zäö ]{0,12}", 0..5),
        ahead in "[a-zäö]{0,6}",
        indent in 1_usize..7,
        comments in 0_usize..3,
        style in prop::sample::select(vec!["|", "|-", ">", ">-", "|+"]),
    ) {
        let blanks = " ".repeat(indent);
        let mut file = "# a comment\n".repeat(comments) + "name: x\nprompt: " + style + "\n";
        file.push_str(&format!("{blanks}begin\n"));
        for line in &before {
            file.push_str(&format!("{blanks}{}\n", line.trim()));
        }
        let line = file.matches('\n').count() + 1;
        let column = indent + ahead.chars().count() + 1 + 3;
        file.push_str(&format!("{blanks}{ahead}{{{{ qqqq }}}}\n{blanks}end\n"));
        prop_assert!(error_of(&file).contains(&format!("prompts/x.yaml:{line}:{column}: unknown function `qqqq`")), "{file}\n{}", error_of(&file));
    }

    /// A mistake in a quoted string is found too, although escapes are longer than the characters they encode.
    #[test]
    fn mistakes_in_quotes_are_found(
        parts in prop::collection::vec(prop::sample::select(vec!["a", "\\n", "\\\"", "\\\\", "\\u00e9", "\\t", " ", "ö", "\\x41"]), 0..12),
        single in prop::collection::vec(prop::sample::select(vec!["a", "''", " ", "ö", "\\"]), 0..12),
    ) {
        let ahead = parts.concat();
        let file = format!("name: x\nprompt: \"{ahead}{{{{ qqqq }}}}\"\n");
        let column = 10 + ahead.chars().count() + 3;
        prop_assert!(error_of(&file).contains(&format!("x.yaml:2:{column}: unknown function")), "{file}{}", error_of(&file));
        let ahead = single.concat();
        let file = format!("name: x\nprompt: '{ahead}{{{{ qqqq }}}}'\n");
        let column = 10 + ahead.chars().count() + 3;
        prop_assert!(error_of(&file).contains(&format!("x.yaml:2:{column}: unknown function")), "{file}{}", error_of(&file));
    }
}
