//! The transcript runner on simple, well-known programs.

use pinion_testkit::Program;
use pinion_testkit::transcript::text::{check_text, parse};

/// Writes back what it reads, and exits with 0 at the end of its input.
fn echo() -> Program {
    Program::new("cat")
}

fn shell(script: &str) -> Program {
    Program::from_command(["sh", "-c", script])
}

fn play(program: &Program, transcript: &str) -> Result<(), String> {
    check_text(
        "sample",
        &format!("run:\npatience: 20 s\n{transcript}"),
        program,
    )
}

#[test]
fn lines_are_sent_awaited_and_remembered() {
    let transcript = r#"
about: what is written comes back
---
> {"id": "a", "n": 1}
> {"id": "b", "list": [{"x": "first"}, 2]}
< {"id": "b"}
remember X = list.0.x
> {"id": "${X}"}
<< {"id": "first"}
never {"id": "a"}
"#;
    assert_eq!(play(&echo(), transcript), Ok(()));
}

#[test]
fn an_indented_line_continues_the_one_above() {
    let transcript = "---\n> {\"a\":\n    1}\n< {\"a\": 1}\n";
    assert_eq!(play(&echo(), transcript), Ok(()));
}

#[test]
fn a_line_that_never_comes_is_reported_with_its_place_and_what_came() {
    let transcript = "patience: 1 s\n---\n> {\"a\": 1}\n< {\"a\": 2}\n";
    let report = play(&echo(), transcript).expect_err("the line never comes");
    assert!(report.contains("line 6"), "{report}");
    assert!(report.contains(r#"no line fits {"a":2}"#), "{report}");
    assert!(report.contains(r#"      {"a":1}"#), "{report}");
}

#[test]
fn the_very_next_line_means_no_other_between() {
    let transcript = "---\n> {\"a\": 1}\n> {\"a\": 2}\n<< {\"a\": 2}\n";
    assert!(play(&echo(), transcript).is_err());
}

#[test]
fn a_line_that_must_not_come_is_reported() {
    let transcript = "---\n> {\"a\": 1}\n< {\"a\": 1}\nnever {\"a\": 2}\n> {\"a\": 2}\n";
    let report = play(&echo(), transcript).expect_err("the line came");
    assert!(report.contains(r#"a line fits {"a":2}"#), "{report}");
}

#[test]
fn the_exit_status_counts() {
    assert_eq!(play(&shell("exit 3"), "---\nexits 3\n"), Ok(()));
    assert!(play(&shell("exit 3"), "---\nexits 0\n").is_err());
    assert!(
        play(&shell("exit 3"), "---\n").is_err(),
        "0 is expected unless stated"
    );
    let killed = "---\n> {}\n< {}\nsignal SIGKILL\nexits by SIGKILL\n";
    assert_eq!(play(&echo(), killed), Ok(()));
}

#[test]
fn a_program_that_ignores_the_end_of_its_input_does_not_pass() {
    let report = play(&shell("exec sleep 60"), "---\n").expect_err("it did not exit");
    assert!(report.contains("sigterm"), "{report}");
}

#[test]
fn files_are_laid_out_and_looked_at() {
    let transcript = "file in.txt:\n    one\n\n    two\nagent file x.txt:\n  y\n---\nexits 0\n\
                      file out.txt has \"one\\n…two\\n\"\n";
    let copy = "cp in.txt out.txt && test -f \"$PI_CODING_AGENT_DIR/x.txt\"";
    assert_eq!(play(&shell(copy), transcript), Ok(()));
}

#[test]
fn a_restart_starts_again_in_the_same_sandbox() {
    let script = "n=$(cat n 2>/dev/null || echo 0); n=$((n+1)); echo $n >n; echo \"{\\\"n\\\":$n}\"; cat >/dev/null";
    let transcript = "---\n< {\"n\": 1}\nrestart\n<< {\"n\": 2}\n";
    assert_eq!(play(&shell(script), transcript), Ok(()));
}

#[test]
fn mistakes_in_a_transcript_name_their_line() {
    for (text, place) in [
        ("about: x\n", "no line with ---"),
        ("---\n? {}\n", "line 2"),
        ("colour: red\n---\n", "line 1"),
        ("---\n< {\n", "line 2"),
        ("---\nremember A = b\n", "line 2"),
        ("---\nwait 5 hours\n", "line 2"),
    ] {
        let error = parse(text).expect_err(text);
        assert!(error.contains(place), "{error}");
    }
}

#[test]
fn lines_of_both_sides_are_held_to_the_schema_of_the_dialect() {
    let silent = shell("cat > /dev/null");
    for (transcript, complaint) in [
        ("dialect: early\n---\n> {\"type\": \"abort\"}", None),
        ("dialect: early\n---\n>! {\"type\": \"get_state\"}", None),
        ("dialect: modern\n---\n> {\"type\": \"get_state\"}", None),
        (
            "dialect: early\n---\n> {\"type\": \"get_state\"}",
            Some("if it is meant to be wrong, write >!"),
        ),
        (
            "dialect: modern\n---\n>! {\"type\": \"get_state\"}",
            Some("nothing is wrong with this line"),
        ),
        ("dialect: old\n---\n", Some("there is no dialect old")),
    ] {
        let report = play(&silent, transcript).err();
        match (report, complaint) {
            (None, None) => {}
            (Some(report), Some(complaint)) if report.contains(complaint) => {}
            (report, _) => panic!("{transcript}: {report:?}"),
        }
    }
    let talks = shell(r#"echo '{"type":"agent_settled","aborted":false}'; cat > /dev/null"#);
    let transcript =
        |dialect: &str| format!("dialect: {dialect}\n---\n< {{\"type\": \"agent_settled\"}}");
    assert_eq!(play(&talks, &transcript("modern")), Ok(()));
    let report = play(&talks, &transcript("early")).unwrap_err();
    assert!(report.contains("not as in the schema"), "{report}");
}
