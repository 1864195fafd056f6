//! Output for people and scripts, and options that show it or send it elsewhere.

use pinion_testkit::{Exit, ModelServer, frames};
use serde_json::{Value, json};

use crate::rules;
use crate::stage::{Home, Ran, lines, names, said};
use crate::support::script;

fn answer() -> String {
    script(&json!([{"think": "Hm."}, {"text": "Hello there."}]))
}

fn run(home: &Home, more: &[&str]) -> Ran {
    let ran = home.run(&[&["run-command", "say.yaml"], more].concat());
    assert_eq!(ran.exit, Exit::Code(0), "{more:?}: {}", ran.stderr);
    ran
}

#[test]
fn text_is_what_was_thought_and_said() {
    let home = Home::offline();
    let what = answer();
    let ran = run(&home, &["--what", &what]);
    assert_eq!(ran.stdout, "Hm.\nHello there.\n");
    let ran = run(
        &home,
        &[
            "--output",
            "text",
            "--non-interactive",
            "--what",
            &script(&json!({"text": "ends\n"})),
        ],
    );
    assert_eq!(ran.stdout, "ends\n");
    let call = script(
        &json!({"turns": [{"tool": "bash", "args": {"command": "echo hi"}}, {"text": "Done."}]}),
    );
    let ran = run(&home, &["--tools", "bash", "--what", &call]);
    for part in ["name: bash", "command", "echo hi", "Done.\n"] {
        assert!(ran.stdout.contains(part), "{part} in {}", ran.stdout);
    }
}

#[test]
fn text_with_metadata_says_which_model_it_was() {
    let home = Home::offline();
    let what = answer();
    for option in ["--with-metadata", "--full-output"] {
        let ran = run(&home, &[option, "--what", &what]);
        assert!(
            ran.stdout.starts_with("Hm.\nHello there.\nMetadata:\n"),
            "{option}: {}",
            ran.stdout
        );
        assert!(
            ran.stdout.contains("model: demo"),
            "{option}: {}",
            ran.stdout
        );
    }
}

#[test]
fn json_is_one_event_a_line() {
    let home = Home::offline();
    let what = answer();
    let events = lines(&run(&home, &["--output", "json", "--what", &what]).stdout);
    let kinds: Vec<&str> = events
        .iter()
        .filter_map(|event| event["type"].as_str())
        .collect();
    assert_eq!(
        kinds,
        [
            "provider-call-started",
            "reasoning-segment-started",
            "reasoning-delta",
            "reasoning-segment-finished",
            "text-segment-started",
            "text-delta",
            "text-segment-finished",
            "provider-call-finished"
        ]
    );
    assert_eq!(events[5]["content"], "Hello there.");
    assert!(events.iter().all(|event| event.get("metadata").is_none()));
    let events = lines(
        &run(
            &home,
            &["--output", "json", "--with-metadata", "--what", &what],
        )
        .stdout,
    );
    assert_eq!(events[6]["content"]["final"], "Hello there.");
    assert_eq!(events[6]["content"]["meta"]["model"], "demo");
    assert_eq!(events[7]["metadata"]["model"], "demo");
    let events = lines(
        &run(
            &home,
            &["--output", "json", "--full-output", "--what", &what],
        )
        .stdout,
    );
    assert_eq!(events[6]["content"], "Hello there.");
    assert!(
        events[6]["metadata"]["segment_id"].is_string(),
        "{}",
        events[6]
    );
}

#[test]
fn yaml_is_the_same_as_documents() {
    let home = Home::offline();
    let ran = run(&home, &["--output", "yaml", "--what", &answer()]);
    let documents: Vec<&str> = ran.stdout.trim_end().split("\n\n").collect();
    assert_eq!(documents.len(), 8, "{}", ran.stdout);
    assert_eq!(documents[0], "type: provider-call-started");
    assert_eq!(documents[5], "type: text-delta\ncontent: Hello there.");
}

#[test]
fn a_failure_is_told_in_every_form() {
    let home = Home::offline();
    let what = script(&json!([{"text": "half"}, {"error": "400 it broke"}]));
    for output in ["text", "json", "yaml"] {
        let ran = home.run(&[
            "run-command",
            "say.yaml",
            "--output",
            output,
            "--what",
            &what,
        ]);
        assert_eq!(ran.exit, Exit::Code(1), "{output}");
        assert!(ran.stdout.contains("half"), "{output}: {}", ran.stdout);
        assert!(
            ran.stderr.contains("400 it broke"),
            "{output}: {}",
            ran.stderr
        );
    }
}

#[test]
fn frames_can_be_written_to_a_file_in_every_mode() {
    let home = Home::offline();
    let what = answer();
    for (number, mode) in ["--rpc", "--output=text", "--output=json", "--output=yaml"]
        .iter()
        .enumerate()
    {
        let file = format!("deep/er/{number}.jsonl");
        // The previous content of the file is overwritten.
        home.write(&file, "old\n");
        let ran = run(
            &home,
            &[mode, "--debug-events-jsonl", &file, "--what", &what],
        );
        let written = home.read(&file);
        frames::check(written.as_bytes());
        let written_lines = lines(&written);
        rules::check(&written_lines).unwrap();
        assert_eq!(written_lines.last().unwrap()["done"]["status"], "ok");
        let capabilities = written_lines[0]["hello"]["capabilities"]
            .as_array()
            .unwrap();
        if *mode == "--rpc" {
            assert_eq!(written, ran.stdout);
        } else {
            assert_eq!(ran.stdout, "Hello there.\n", "{mode}");
            assert_eq!(capabilities.last().unwrap(), "debug-log", "{mode}");
        }
    }
    let mut talk = home.talk(&["--debug-events-jsonl", "talk.jsonl"]);
    assert_eq!(talk.say("a", &what), "ok");
    talk.process.send_text("{");
    assert_eq!(talk.finish(), Exit::Code(0));
    assert_eq!(lines(&talk.home.read("talk.jsonl")), talk.lines());
    // A failure is in the file too.
    let failing = script(&json!({"error": "400 no"}));
    let ran = talk.home.run(&[
        "run-command",
        "say.yaml",
        "--debug-events-jsonl",
        "failed.jsonl",
        "--what",
        &failing,
    ]);
    assert_eq!(ran.exit, Exit::Code(1));
    let written = lines(&talk.home.read("failed.jsonl"));
    let [error, done] = &written[written.len() - 2..] else {
        unreachable!()
    };
    assert_eq!(
        (&error["error"]["code"], &error["error"]["terminal"]),
        (&json!("run_failed"), &json!(true))
    );
    assert_eq!(done["done"]["status"], "failed");
}

#[test]
fn words_go_to_standard_error_or_to_a_file() {
    let home = Home::offline();
    let what = answer();
    let misspelled = home.read("say.yaml") + "factories:\n  chat: {engin: gpt-4}\n";
    home.write("say.yaml", &misspelled);
    let words = "it has no effect";
    let ran = run(&home, &["--rpc", "--what", &what]);
    assert!(ran.stderr.contains(words), "{}", ran.stderr);
    let ran = run(&home, &["--rpc", "--log-file", "log.txt", "--what", &what]);
    assert_eq!(ran.stderr, "");
    assert!(home.read("log.txt").contains(words));
    assert_eq!(ran.told().status(), "ok");
    let ran = run(&home, &["--log-level", "error", "--what", &what]);
    assert_eq!(ran.stderr, "");
    // In text the two may be mixed, if the user requests it.
    let ran = run(&home, &["--log-to-stdout", "--what", &what]);
    assert!(
        ran.stdout.contains(words) && ran.stdout.contains("Hello there."),
        "{}",
        ran.stdout
    );
}

#[test]
fn what_would_be_asked_is_printed_and_nobody_is_asked() {
    let server = ModelServer::start(json!({}));
    let home = Home::of(&server, "openai");
    home.write("full.yaml", "name: full\nshort: Everything\nflags:\n  - name: who\n    type: string\n    default: world\nsystem-prompt: Be brief.\nprompt: Hello {{ .who }}.\n");
    let ran = home.run(&[
        "run-command",
        "full.yaml",
        "--print-prompt",
        "--rpc",
        "--who",
        "moon",
    ]);
    assert_eq!(ran.exit, Exit::Code(0), "{}", ran.stderr);
    assert_eq!(ran.stdout, "system: Be brief.\nuser: Hello moon.\n");
    let ran = home.run(&[
        "run-command",
        "full.yaml",
        "--print-inference-settings",
        "--stdin-rpc",
    ]);
    assert_eq!(ran.exit, Exit::Code(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("engine: some-model"), "{}", ran.stdout);
    assert!(
        ran.stdout.contains("openai-api-key: \"***\""),
        "{}",
        ran.stdout
    );
    assert!(!format!("{ran:?}").contains("a-secret-key"));
    assert_eq!(server.request_count(), 0);
}

#[test]
fn help_is_made_from_the_file() {
    let home = Home::offline();
    home.write("full.yaml", "name: full\nshort: Says hello\nlong: Says hello to somebody, at length.\nflags:\n  - name: who\n    type: string\n    default: world\n    help: Whom to greet\nprompt: Hello {{ .who }}.\n");
    let help = home.run(&["run-command", "full.yaml", "--help"]);
    assert_eq!(help.exit, Exit::Code(0));
    for part in [
        "Says hello",
        "--who",
        "Whom to greet",
        "--stdin-rpc",
        "--patch-mode",
    ] {
        assert!(help.stdout.contains(part), "{part} in {}", help.stdout);
    }
    let long = home.run(&["run-command", "full.yaml", "--long-help"]);
    assert!(long.stdout.len() > help.stdout.len());
    for part in ["--ai-engine", "--who", "at length"] {
        assert!(long.stdout.contains(part), "{part} in {}", long.stdout);
    }
    assert_eq!(
        home.run(&["run-command", "full.yaml", "--print-yaml"])
            .stdout,
        home.read("full.yaml")
    );
}

/// An image of one pixel.
const PICTURE: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

#[test]
fn pictures_go_with_the_prompt_which_is_said_twice() {
    let server = ModelServer::start(json!({"turns": [{"steps": ["A dot."]}]}));
    let home = Home::of(&server, "openai");
    home.sandbox.add_base64_files(&json!({"dot.png": PICTURE}));
    let told = home.say("What is this?", &["--images", "dot.png"]);
    assert_eq!(
        (told.status(), told.exit),
        ("ok", Exit::Code(0)),
        "{}",
        told.stderr
    );
    let request = &server.requests()[0];
    assert_eq!(
        said(request),
        ["user: What is this?", "user: What is this?"]
    );
    let parts = request["body"]["messages"][0]["content"]
        .as_array()
        .unwrap();
    let picture = parts
        .iter()
        .find(|part| part["type"] == "image_url")
        .unwrap();
    let url = picture["image_url"]["url"].as_str().unwrap();
    assert!(url.starts_with("data:image/png;base64,"), "{url}");
    let no_picture = home.run(&["run-command", "say.yaml", "--rpc", "--images", "say.yaml"]);
    assert_eq!(
        (no_picture.exit, no_picture.stdout.as_str()),
        (Exit::Code(1), "")
    );
}

#[test]
fn only_tools_that_were_named_are_offered() {
    let server =
        ModelServer::start(json!({"on_exhausted": "repeat_last", "turns": [{"steps": ["Fine."]}]}));
    let home = Home::of(&server, "openai");
    for (tools, offered) in [
        (&[][..], &[][..]),
        (&["--tools", "bash,read"][..], &["bash", "read"][..]),
    ] {
        let told = home.say("x", tools);
        assert_eq!(told.status(), "ok", "{}", told.stderr);
        let request = server.requests().pop().unwrap();
        let names: Vec<Value> = request["body"]["tools"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|tool| tool["function"]["name"].clone())
            .collect();
        assert_eq!(names, offered);
    }
    // A call of an unknown tool is answered, and the model continues.
    let turns = json!({"turns": [{"steps": [{"tool": "bash", "args": {"command": "touch ran"}, "id": "call_1"}]}, {"steps": ["Oh."]}]});
    server.set_scenario(turns);
    let told = home.say("x", &[]);
    assert_eq!(
        (told.status(), told.exit),
        ("ok", Exit::Code(0)),
        "{:?}",
        names(&told.lines)
    );
    assert!(!home.sandbox.work().join("ran").exists());
}
