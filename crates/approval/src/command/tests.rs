use proptest::prelude::*;

use super::*;
use crate::shell::read;

fn patterns(texts: &[&str]) -> Vec<CommandPattern> {
    let parse = |text: &&str| CommandPattern::parse(text).unwrap();
    texts.iter().map(parse).collect()
}

fn permitted(rules: &[&str], command: &str) -> bool {
    all_fit(&read(command), patterns(rules).iter())
}

fn forbidden(rule: &str, command: &str) -> Fit {
    any_fits(&read(command), &patterns(&[rule])[0])
}

#[test]
fn only_matching_commands_are_permitted() {
    for (rule, command, expected) in [
        ("git status", "git status", true),
        ("git status", "git  'status'", true),
        ("git status", "git status 2>&1 >/dev/null", true),
        ("git status", "git status && git status", true),
        ("git status", "git status -s", false),
        ("git status", "git", false),
        ("git status", "'git status'", false),
        ("git status", "/usr/bin/git status", false),
        ("git status", "./git status", false),
        ("git status", "sudo git status", false),
        ("git status *", "git status", true),
        ("git status *", "git status -s 'a b' $X *.rs", true),
        ("git status *", "git statuses", false),
        ("git status*", "git statuses a", true),
        ("git status*", "git status", true),
        ("git status*", "git status$X", true),
        ("git status*", "git stat$X", false),
        ("git *", "git $X", true),
        ("git status *", "git $X", false),
        ("git * main", "git push main", true),
        ("git * main", "git push origin main", false),
        ("npm run test:*", "npm run test:unit -- x", true),
        ("make *-test", "make unit-test", true),
        ("make *-test", "make unit-test all", false),
        ("*", "anything at all", true),
        ("*", "anything > file", false),
        ("*", "A=1 anything", false),
        ("*", "anything `x`", false),
    ] {
        assert_eq!(
            permitted(&[rule], command),
            expected,
            "{rule:?} {command:?}"
        );
    }
}

#[test]
fn a_permitted_command_does_not_permit_others() {
    let rules = ["git status *", "echo *", "printf *"];
    for command in [
        "git status; rm -rf x",
        "git status;rm -rf x",
        "git status && rm -rf x",
        "git status || rm -rf x",
        "git status | sh",
        "git status & rm -rf x",
        "git status\nrm -rf x",
        "git status $(rm -rf x)",
        "git status \"$(rm -rf x)\"",
        "git status `rm -rf x`",
        "git status <(rm -rf x)",
        "git status > x",
        "git status >> ~/.bashrc",
        "git status < x",
        "GIT_EXTERNAL_DIFF=x git status",
        "PATH=.; git status",
        "git() { rm -rf x; }; git status",
        "alias git=rm; git status",
        "cd /; git status",
        "(git status; rm x)",
        "{ git status; rm x; }",
        "if git status; then rm x; fi",
        "for f in *; do rm $f; done",
        "echo a <<EOF\n$(rm x)\nEOF",
        "echo ${a:=$(rm x)}",
        "echo $((a[$(rm x)]))",
        "printf -v 'a[$(rm x)]' b",
        "echo a \u{2028} rm x",
        "# git status\nrm x",
        "",
        "# nothing",
    ] {
        assert!(!permitted(&rules, command), "{command:?}");
    }
    assert!(permitted(
        &rules,
        "git status | echo $(printf a) && (echo b)"
    ));
}

#[test]
fn a_forbidden_command_is_found_inside_others() {
    for (command, expected) in [
        ("rm -rf x", Fit::Yes),
        ("rm", Fit::Yes),
        ("/bin/rm x", Fit::Yes),
        ("\\rm x", Fit::Yes),
        ("r''m x", Fit::Yes),
        ("ls; rm x", Fit::Yes),
        ("ls $(rm x)", Fit::Yes),
        ("A=1 rm x", Fit::Yes),
        ("rm x > y", Fit::Yes),
        ("sudo -u me rm x", Fit::Yes),
        ("env A=1 /bin/rm x", Fit::Yes),
        ("find . -exec rm {} +", Fit::Yes),
        ("ls | xargs -n1 rm", Fit::Yes),
        ("if a; then rm x; fi", Fit::Yes),
        ("rm x <<EOF\nEOF", Fit::Yes),
        ("ls `x`", Fit::Maybe),
        ("$X y", Fit::Maybe),
        ("sudo $X", Fit::Maybe),
        ("bash -c 'rm x'", Fit::Maybe),
        ("eval x", Fit::Maybe),
        ("ls; f() { x; }", Fit::Maybe),
        ("git rm x", Fit::No),
        ("echo rm x", Fit::No),
        ("rmdir x", Fit::No),
        ("ls $X *.rs > y", Fit::No),
        ("", Fit::No),
    ] {
        assert_eq!(forbidden("rm *", command), expected, "{command:?}");
    }
    assert_eq!(forbidden("git push", "git push $X"), Fit::Maybe);
    assert_eq!(forbidden("git push *", "git $X"), Fit::Maybe);
    assert_eq!(forbidden("git push *", "git pull"), Fit::No);
}

#[test]
fn a_rule_is_one_plain_command() {
    for text in [
        "a; b", "a | b", "a > b", "a $B", "a 'b'", "a \"b\"", "a\\b", "a `b`", "a\nb", "A=1 b",
    ] {
        assert!(CommandPattern::parse(text).is_err(), "{text:?}");
    }
}

proptest! {
    /// No text after a permitted command makes it run something that is not permitted.
    #[test]
    fn text_after_a_permitted_command_is_checked(
        glue in "[;&|\n]{1,2}",
        name in "[a-z]{1,6}",
        rest in "[a-z ./$'\"-]{0,12}",
    ) {
        prop_assume!(!["git", "if", "then", "elif", "else", "fi", "while", "until", "do", "done"].contains(&name.as_str()));
        let command = format!("git status{glue}{name} {rest}");
        prop_assert!(!permitted(&["git status *"], &command), "{:?}", command);
    }

    /// Words in quotes are the words of the rule.
    #[test]
    fn quoting_changes_nothing(words in proptest::collection::vec("[a-z]{1,5}", 1..5)) {
        let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
        prop_assert!(permitted(&[&words.join(" ")], &quoted.join("  ")));
    }

    /// A star matches like `.*` in a regular expression.
    #[test]
    fn stars_match_as_expected(pattern in "[ab*]{0,6}", text in "[ab]{0,8}") {
        let mut reachable = vec![true];
        reachable.resize(text.len() + 1, false);
        for p in pattern.bytes() {
            let mut next = vec![false; text.len() + 1];
            for at in 0..=text.len() {
                if p == b'*' {
                    next[at] = reachable[..=at].iter().any(|r| *r);
                } else if at > 0 {
                    next[at] = reachable[at - 1] && text.as_bytes()[at - 1] == p;
                }
            }
            reachable = next;
        }
        prop_assert_eq!(fits_wildcard(&pattern, &text), reachable[text.len()]);
    }
}
