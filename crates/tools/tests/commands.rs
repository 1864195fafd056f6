//! The bash tool and the user's own commands, with the texts clients expect.

mod common;

use std::time::Duration;

use common::{Workspace, text};
use pinion_tools::{BashOutcome, ResultForm, ToolSettings, user_bash};
use serde_json::{Value, json};

fn command(line: &str) -> Value {
    json!({"command": line})
}

#[tokio::test]
async fn a_command_answers_with_what_it_printed() {
    let workspace = Workspace::new(&[]);
    for (line, shown) in [
        ("echo hello from bash", "hello from bash\n"),
        ("true", "(no output)"),
        (
            "pwd -P",
            &format!("{}\n", workspace.path().canonicalize().unwrap().display()),
        ),
        ("cat", "(no output)"),
        ("printf '\\033[31mred\\r\\n'", "\u{1b}[31mred\r\n"),
        ("printf '\\xff\\xe2\\x82'", "\u{fffd}\u{fffd}"),
        ("echo one; echo two >&2; echo three", "one\ntwo\nthree\n"),
        ("kill -9 $$", "(no output)"),
        ("kill -40 $$", "(no output)"),
    ] {
        let output = workspace.call("bash", command(line)).await.unwrap();
        assert_eq!(
            (text(&output).as_str(), output.details),
            (shown, None),
            "{line}"
        );
    }
}

#[tokio::test]
async fn a_failing_command_is_reported() {
    let workspace = Workspace::new(&[]);
    for (arguments, error) in [
        (
            command("false"),
            "(no output)\n\nCommand exited with code 1",
        ),
        (
            command("echo to-out; echo to-err 1>&2; exit 3"),
            "to-out\nto-err\n\n\nCommand exited with code 3",
        ),
        (
            json!({"command": "echo before; sleep 20; echo after", "timeout": 0.3}),
            "before\n\n\nCommand timed out after 0.3 seconds",
        ),
        (
            json!({"command": "sleep 20", "timeout": "0.1"}),
            "Command timed out after 0.1 seconds",
        ),
        (
            json!({"command": "exit 4", "timeout": 0}),
            "(no output)\n\nCommand exited with code 4",
        ),
    ] {
        assert_eq!(workspace.error("bash", arguments).await, error);
    }
    let long = workspace
        .error("bash", command(&format!("echo {}", "x".repeat(200_000))))
        .await;
    assert!(
        long.starts_with("spawn E2BIG: the command is 200005 bytes long"),
        "{long}"
    );
    let broken = workspace.error("bash", command("echo \0")).await;
    assert!(broken.contains("NUL"), "{broken}");
}

#[tokio::test]
async fn an_abort_ends_the_command_and_the_next_one_does_not_start() {
    let workspace = Workspace::new(&[]);
    let cancel = workspace.cancel.clone();
    let updates = workspace.updates.clone();
    tokio::spawn(async move {
        while updates.lock().unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        cancel.cancel();
    });
    let error = workspace
        .error("bash", command("echo begun; sleep 30; echo never"))
        .await;
    assert_eq!(error, "begun\n\n\nCommand aborted");
    let error = workspace
        .error("bash", command("echo second; touch ran"))
        .await;
    assert_eq!(error, "Command aborted");
    assert!(!workspace.path().join("ran").exists());
}

#[tokio::test]
async fn progress_is_shown_while_a_command_runs() {
    let workspace = Workspace::new(&[]);
    let line = "for i in 1 2 3; do echo line $i; sleep 0.25; done";
    let shown = workspace.text("bash", command(line)).await;
    assert_eq!(shown, "line 1\nline 2\nline 3\n");
    let updates = workspace.updates.lock().unwrap();
    let texts: Vec<String> = updates.iter().map(text).collect();
    assert!(!texts.is_empty());
    assert!(
        texts.iter().all(|text| shown.starts_with(text.as_str())),
        "{texts:?}"
    );
    assert!(
        texts.windows(2).all(|pair| pair[0].len() < pair[1].len()),
        "{texts:?}"
    );
    assert!(
        updates
            .iter()
            .all(|update| update.details == Some(json!({})))
    );
}

#[tokio::test]
async fn a_flood_of_output_makes_few_updates_and_the_last_word_arrives() {
    let workspace = Workspace::new(&[]);
    let line = "for i in $(seq 400); do echo $i; done; sleep 0.5";
    let output = workspace.call("bash", command(line)).await.unwrap();
    let updates = workspace.updates.lock().unwrap();
    assert!(updates.len() < 100, "{} updates", updates.len());
    assert_eq!(
        text(updates.last().unwrap()),
        text(&output),
        "sent when the command fell silent"
    );
}

#[tokio::test]
async fn long_output_shows_its_end_and_names_a_file_with_all_of_it() {
    let workspace = Workspace::new(&[]);
    for (line, shown, totals) in [
        (
            "seq 1 5000",
            "[Showing lines 3002-5001 of 5001. Full output: ",
            (5001, 23893, 2000, 9995),
        ),
        (
            "for i in 1 2 3; do head -c 40000 /dev/zero | tr '\\0' x; echo; done",
            "[Showing lines 3-4 of 4 (50.0KB limit). Full output: ",
            (4, 120_003, 2, 40_001),
        ),
        (
            "head -c 120000 /dev/zero | tr '\\0' y",
            "[Showing last 50.0KB of line 1 (line is 117.2KB). Full output: ",
            (1, 120_000, 1, 51_200),
        ),
    ] {
        let output = workspace.call("bash", command(line)).await.unwrap();
        let details = output.details.clone().unwrap();
        let cut = &details["truncation"];
        let log = details["fullOutputPath"].as_str().unwrap();
        let notice = format!("\n\n{shown}{log}]");
        let content = cut["content"].as_str().unwrap();
        assert_eq!(text(&output), format!("{content}{notice}"));
        let count = |name: &str| cut[name].as_u64().unwrap();
        let found = (
            count("totalLines"),
            count("totalBytes"),
            count("outputLines"),
            count("outputBytes"),
        );
        assert_eq!(found, totals);
        assert_eq!(std::fs::metadata(log).unwrap().len(), totals.1);
        let name = std::path::Path::new(log)
            .file_name()
            .unwrap()
            .to_str()
            .unwrap();
        let hex = name
            .strip_prefix("pi-bash-")
            .unwrap()
            .strip_suffix(".log")
            .unwrap();
        assert!(hex.len() == 16 && hex.bytes().all(|byte| byte.is_ascii_hexdigit()));
        std::fs::remove_file(log).unwrap();
    }
}

#[tokio::test]
async fn the_shell_and_its_surroundings_follow_the_settings() {
    let workspace = Workspace::new(&[]);
    let settings = ToolSettings {
        shell_path: Some("/bin/sh".into()),
        shell_command_prefix: Some("greeting=hello".into()),
        bin_dir: Some("/opt/agent/bin".into()),
        env: vec![("EXTRA".into(), "more".into())],
        ..ToolSettings::default()
    };
    let line = "echo $greeting $EXTRA $PI_CODING_AGENT ${PATH%%:*} $0";
    let output = workspace
        .call_with("bash", command(line), settings)
        .await
        .unwrap();
    assert_eq!(text(&output), "hello more true /opt/agent/bin /bin/sh\n");

    let settings = ToolSettings {
        shell_path: Some("/no/shell".into()),
        ..ToolSettings::default()
    };
    let error = workspace
        .call_with("bash", command("true"), settings)
        .await
        .unwrap_err();
    assert!(
        error
            .0
            .starts_with("Custom shell path not found: /no/shell\n"),
        "{error}"
    );

    let settings = ToolSettings {
        shell_path: Some(workspace.path().to_owned()),
        ..ToolSettings::default()
    };
    let error = workspace
        .call_with("bash", command("true"), settings)
        .await
        .unwrap_err();
    assert_eq!(
        error.0,
        format!("spawn {} EACCES", workspace.path().display())
    );

    let gone = Workspace::new(&[]);
    std::fs::remove_dir_all(gone.path()).unwrap();
    assert_eq!(
        gone.error("bash", command("true")).await,
        format!(
            "Working directory does not exist: {}\nCannot execute bash commands.",
            gone.path().display()
        )
    );
}

#[allow(
    clippy::unwrap_used,
    reason = "a command that cannot be run should fail the test"
)]
async fn run(workspace: &Workspace, line: &str) -> BashOutcome {
    user_bash(
        line,
        workspace.path(),
        &ToolSettings::default(),
        None,
        &workspace.cancel,
    )
    .await
    .unwrap()
}

fn outcome(output: &str, exit_code: Option<i32>) -> BashOutcome {
    BashOutcome {
        output: output.into(),
        exit_code,
        cancelled: exit_code.is_none(),
        truncated: false,
        full_output_path: None,
    }
}

#[tokio::test]
async fn the_user_gets_plain_text_and_an_exit_code() {
    let workspace = Workspace::new(&[]);
    for (line, expected) in [
        ("echo from rpc", outcome("from rpc\n", Some(0))),
        ("echo oops; exit 4", outcome("oops\n", Some(4))),
        ("true", outcome("", Some(0))),
        (
            "printf '\\033[31mred\\033[0m\\r\\nline\\0two\\n'; printf '\\xff\\xfe bytes\\n'; \
             printf 'tab\\there\\n'",
            outcome("red\nlinetwo\n\u{fffd}\u{fffd} bytes\ntab\there\n", Some(0)),
        ),
        ("echo x; kill -9 $$", outcome("x\n", None)),
    ] {
        assert_eq!(run(&workspace, line).await, expected, "{line}");
    }
    let long = run(&workspace, "seq 1 5000").await;
    assert!(long.output.starts_with("3002\n") && long.output.ends_with("5000\n"));
    assert_eq!(
        (long.exit_code, long.cancelled, long.truncated),
        (Some(0), false, true)
    );
    std::fs::remove_file(long.full_output_path.unwrap()).unwrap();
}

#[tokio::test]
async fn the_user_may_cancel() {
    let workspace = Workspace::new(&[]);
    let cancel = workspace.cancel.clone();
    let begun = workspace.path().join("begun");
    tokio::spawn(async move {
        while !begun.exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        cancel.cancel();
    });
    assert_eq!(
        run(&workspace, "echo begun; touch begun; sleep 30").await,
        outcome("begun\n", None)
    );
}

#[tokio::test]
async fn a_background_job_does_not_hold_up_the_answer() {
    let workspace = Workspace::new(&[]);
    let shown = workspace
        .text("bash", command("sleep 300 & echo started"))
        .await;
    assert_eq!(shown, "started\n");
    pinion_process::kill_all();
}

fn structured() -> ToolSettings {
    ToolSettings {
        form: ResultForm::Structured,
        ..ToolSettings::default()
    }
}

#[tokio::test]
async fn a_structured_result_of_a_failed_command_is_whole() {
    let workspace = Workspace::new(&[]);
    let arguments = json!({"command": "echo a; exit 3"});
    let output = workspace.call_with("bash", arguments, structured()).await;
    let output = output.unwrap();
    assert!(output.is_error);
    assert_eq!(output.details, None);
    assert_eq!(
        output.content[0].as_text(),
        Some("a\n\n\nCommand exited with code 3")
    );
    let mut result = output.structured_content.unwrap();
    assert!(result["wall_time_seconds"].take().is_number());
    let expected =
        json!({"output": "a\n", "truncated": false, "exit_code": 3, "wall_time_seconds": null});
    assert_eq!(result, expected);
}

#[tokio::test]
async fn of_structured_output_a_final_line_break_opens_no_line() {
    let workspace = Workspace::new(&[]);
    let arguments = json!({"command": "seq 1 5000"});
    let output = workspace.call_with("bash", arguments, structured()).await;
    let output = output.unwrap();
    let text = output.content[0].as_text().unwrap();
    assert!(
        text.starts_with("3001\n") && text.contains("[Showing lines 3001-5000 of 5000."),
        "{text}"
    );
    let whole = output.structured_content.unwrap();
    assert!(whole["output"].as_str().unwrap().starts_with("1\n2\n"));
    let log = output.details.unwrap()["fullOutputPath"]
        .as_str()
        .unwrap()
        .to_owned();
    std::fs::remove_file(log).unwrap();
}

#[tokio::test]
async fn commands_have_the_variables_of_their_call() {
    let mut workspace = Workspace::new(&[]);
    workspace.env = vec![("OF_THE_CALL".to_owned(), "yes".to_owned())];
    let arguments = json!({"command": "echo \"$OF_THE_CALL\""});
    let output = workspace.call("bash", arguments).await.unwrap();
    assert_eq!(output.content[0].as_text(), Some("yes\n"));
}
