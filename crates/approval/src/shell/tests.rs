use proptest::prelude::*;

use super::*;
use crate::simple_command::Word;

/// The commands found, one per line: words with `…` where they are open, `=` for variables, `>` for files.
fn shown(text: &str) -> String {
    let script = read(text);
    let word = |word: &Word| match word.open {
        true => format!("{}…", word.text),
        false => word.text.clone(),
    };
    let mut lines: Vec<String> = Vec::new();
    for command in &script.commands {
        let mut parts: Vec<String> = command.words.iter().map(word).collect();
        if command.assigns {
            parts.insert(0, "=".into());
        }
        if command.redirection == Redirection::ToFile {
            parts.push(">".into());
        }
        lines.push(parts.join(" "));
    }
    if script.opaque {
        lines.push("?".into());
    }
    lines.join(" | ")
}

#[test]
fn every_command_is_found() {
    for (text, found) in [
        ("git status", "git status"),
        ("  git   status\t-s ", "git status -s"),
        ("git status; rm -rf x", "git status | rm -rf x"),
        ("git status;rm x", "git status | rm x"),
        ("git status && rm x || ls", "git status | rm x | ls"),
        ("git status | sh", "git status | sh"),
        ("git status |& sh", "git status | sh"),
        ("git status & rm x", "git status | rm x"),
        ("git status\nrm x", "git status | rm x"),
        ("git status \\\n -s", "git status -s"),
        ("git log $(rm x)", "rm x | git log …"),
        ("git log \"a $(rm x) b\"", "rm x | git log a …"),
        ("git log $(echo $(rm x))", "rm x | echo … | git log …"),
        ("(rm x; ls)", "rm x | ls"),
        ("( (rm x) )", "rm x"),
        ("{ rm x; ls; }", "rm x | ls"),
        (
            "if a; then b; elif c; then d; else e; fi",
            "a | b | c | d | e",
        ),
        ("while a; do b; done", "a | b"),
        ("until ! a; do b; done", "a | b"),
        ("for x in a $(rm y); do echo $x; done", "rm y | echo …"),
        ("for x in\ndo a; done", "a"),
        ("# just a note\nls # and another; rm x", "ls"),
        ("echo a#b", "echo a#b"),
        ("A=1 B=$(rm x) git status", "rm x | = git status"),
        ("PATH=/tmp", "="),
        ("a[1]=2", "="),
        ("a+=2 b", "= b"),
        ("1a=2", "1a=2"),
        ("echo A=1", "echo A=1"),
        ("'if' x", "if x"),
        ("A=1 if x", "= if x"),
        ("echo if; echo }", "echo if | echo }"),
        ("", ""),
        (" ;; ", "?"),
    ] {
        assert_eq!(shown(text), found, "{text:?}");
    }
}

#[test]
fn quotes_are_removed_and_their_text_stays() {
    for (text, found) in [
        ("'git' \"status\"", "git status"),
        ("g\"i\"t st'at'us", "git status"),
        ("\\rm x", "rm x"),
        ("echo 'a; rm b'", "echo a; rm b"),
        ("echo \"a; rm b\"", "echo a; rm b"),
        ("echo 'a $(rm b)'", "echo a $(rm b)"),
        ("echo \"a \\$(rm b)\"", "echo a $(rm b)"),
        ("echo \"\\a \\\" \\\\\"", "echo \\a \" \\"),
        ("echo \"a\\\nb\"", "echo ab"),
        ("echo a\\;b", "echo a;b"),
        ("echo a\\ b", "echo a b"),
        ("echo ''", "echo "),
        ("echo 'a\nb'", "echo a\nb"),
        ("echo grün 日本 '🦀'", "echo grün 日本 🦀"),
        ("echo 5$ $", "echo 5$ $"),
        ("git diff HEAD~1 a}b", "git diff HEAD~1 a}b"),
        ("[ -f x ]", "[ -f x ]"),
        ("find . -exec rm {} +", "find . -exec rm {} +"),
    ] {
        assert_eq!(shown(text), found, "{text:?}");
    }
}

#[test]
fn expansions_make_a_word_open() {
    for (text, found) in [
        ("echo $A", "echo …"),
        ("echo a$A-b", "echo a…"),
        ("echo ${A}b", "echo …"),
        ("echo \"$A\" $1 $? $@ $$", "echo … … … … …"),
        ("ls *.rs a? [ab] {a,b} ~ ~/x a=~", "ls … a… … … … … a=…"),
    ] {
        assert_eq!(shown(text), found, "{text:?}");
    }
}

#[test]
fn redirections_to_files_are_told_from_harmless_ones() {
    for (text, found) in [
        ("git status > x", "git status >"),
        ("git status>x", "git status >"),
        ("git status >> x", "git status >"),
        ("git status >| x", "git status >"),
        ("git status 2> x", "git status >"),
        ("git status &> x", "git status >"),
        ("git status &>> x", "git status >"),
        ("git status >& x", "git status >"),
        ("git status < x", "git status >"),
        ("git status > $X", "git status >"),
        ("git status > /dev/nulls", "git status >"),
        ("> x git status", "git status >"),
        ("> x", ">"),
        ("(ls) > x", "ls | >"),
        ("{ ls; } > x", "ls | >"),
        ("while a; do b; done > x", "a | b | >"),
        ("git status 2>&1", "git status"),
        ("git status 2>&1 >/dev/null", "git status"),
        ("git status > /dev/null 2>&1 < /dev/null", "git status"),
        ("git status &>/dev/null", "git status"),
        ("git status 2>&-", "git status"),
        ("echo a2>x", "echo a2 >"),
        ("echo 2 >x", "echo 2 >"),
    ] {
        assert_eq!(shown(text), found, "{text:?}");
    }
}

#[test]
fn unknown_syntax_is_opaque() {
    for text in [
        "git status `rm x`",
        "git status \"`rm x`\"",
        "cat <<EOF\nrm x\nEOF",
        "cat <<-'EOF'\nrm x\nEOF",
        "cat <<< x",
        "diff <(rm x) y",
        "tee >(rm x)",
        "cat <\\\n<EOF\nEOF",
        "echo $((1+1))",
        "echo $[1+1]",
        "((a=1))",
        "(\\\n(a=1))",
        "[[ a ]]",
        "case x in a) rm x;; esac",
        "f() { rm x; }",
        "f () { rm x; }",
        "function f { rm x; }",
        "coproc rm x",
        "a=(1 2)",
        "echo @(a|b)",
        "$X y",
        "\"$X\" y",
        "$(echo rm) y",
        "r* y",
        "{rm,-rf,x}",
        "~/bin/x",
        "echo $'a'",
        "echo $\"a\"",
        "echo ${A:-b}",
        "echo ${A:=$(rm x)}",
        "echo ${!A}",
        "echo $\\\n(rm x)",
        "i\\\nf rm x; then ls; fi",
        "echo \"$\\\n(rm x)\"",
        "echo 'a",
        "echo \"a",
        "echo $(a",
        "echo )",
        "(a",
        "echo >",
        "echo > ; rm x",
        "for x do rm y; done",
        "for ((;;)); do rm x; done",
        "for x in a & rm y",
        "git\u{a0}status",
        "git\u{2028}status",
        "git status\r",
        "git \u{1b}[2K",
        "git 'a\0b'",
        "a ;; b",
        "echo &>/dev/null touch M",
        "echo &>/dev/null &>/dev/null touch M",
        "&>/dev/null touch M",
    ] {
        assert!(read(text).opaque, "{text:?} is {}", shown(text));
    }
    let deep = format!("{}a{}", "(\n".repeat(100), ")".repeat(100));
    assert!(read(&deep).opaque);
    // Commands found before the opaque part remain: a rule can still forbid them.
    assert_eq!(shown("rm x <<EOF\nEOF"), "rm x | ?");
    assert_eq!(shown("rm x; `y`"), "rm x | ?");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_text_is_parsed(text in "[ab$(){}\\[\\]'\"`\\\\;&|<>#=~*\n \t\r1ü🦀-]{0,40}") {
        read(&text);
    }

    /// A command after a known one and any operator is found, or the whole command is opaque.
    #[test]
    fn a_second_command_is_never_lost(
        lead in "(git status|echo 'a b'|echo \"x\"|A=1|ls \\*|! true|\\(ls\\)|\\{ ls; \\})",
        operator in "( ?(;|&&|\\|\\||\\||&|\n|\\|&|;\n) ?)",
        noise in "( 2>&1| # note\n| > /dev/null| \\\\\n)?",
    ) {
        let text = format!("{lead}{noise}{operator}evil now");
        let script = read(&text);
        let found = script.commands.iter().any(|command| {
            command.words.first().is_some_and(|word| word.text == "evil")
        });
        prop_assert!(found || script.opaque, "{:?} is {}", text, shown(&text));
    }

    /// Text in single quotes is one word and runs nothing.
    #[test]
    fn quoted_text_is_one_word(inner in "[^'\0]{0,30}") {
        let text = format!("echo '{inner}'");
        let script = read(&text);
        prop_assert!(!script.opaque);
        prop_assert_eq!(script.commands.len(), 1);
        prop_assert_eq!(&script.commands[0].words[1], &Word::literal(&inner));
    }
}
