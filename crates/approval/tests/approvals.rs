//! Tests approvals through the engine's interface: permitted calls, refused calls, questions and grants.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::{BoxFuture, join};
use pinion_agent::{Admission, Gate, Maker, ToolRun, Verdict};
use pinion_approval::{
    Absence, Answer, Approvals, Ask, Mode, Origin, Policy, Question, Rule, Unattended,
};
use serde_json::{Value, json};

/// Gives the same answer to every question and stores the questions.
struct Asked {
    answer: Answer,
    titles: Mutex<Vec<String>>,
}

impl Asked {
    fn with(answer: Answer) -> Arc<Self> {
        Arc::new(Self {
            answer,
            titles: Mutex::default(),
        })
    }

    fn titles(&self) -> Vec<String> {
        std::mem::take(&mut self.titles.lock().unwrap())
    }
}

impl Ask for Asked {
    fn ask<'a>(&'a self, question: &'a Question, _: Duration) -> BoxFuture<'a, Answer> {
        self.titles.lock().unwrap().push(question.title.clone());
        Box::pin(async {
            tokio::task::yield_now().await;
            self.answer
        })
    }
}

fn rules(texts: &[&str]) -> Vec<Rule> {
    let parse = |text: &&str| Rule::parse(text, Origin::Flag).unwrap();
    texts.iter().map(parse).collect()
}

fn policy(mode: Mode, allow: &[&str], deny: &[&str]) -> Policy {
    Policy {
        mode,
        answer_timeout: Duration::from_secs(300),
        allow: rules(allow),
        deny: rules(deny),
    }
}

struct Stage {
    gate: Approvals,
    asked: Arc<Asked>,
    cwd: tempfile::TempDir,
}

impl Stage {
    fn new(policy: Policy, answer: Answer) -> Self {
        let asked = Asked::with(answer);
        Self {
            gate: Approvals::new(policy, Arc::clone(&asked) as _),
            asked,
            cwd: tempfile::tempdir().unwrap(),
        }
    }

    fn cwd(&self) -> PathBuf {
        self.cwd.path().canonicalize().unwrap()
    }

    async fn call(&self, tool: &str, arguments: Value) -> Verdict {
        admit(&self.gate, tool, arguments, Maker::BuiltIn, &self.cwd()).await
    }

    async fn bash(&self, command: &str) -> Verdict {
        self.call("bash", json!({"command": command})).await
    }
}

async fn admit(
    gate: &Approvals,
    tool: &str,
    arguments: Value,
    maker: Maker,
    cwd: &Path,
) -> Verdict {
    let run = ToolRun {
        call_id: "c".into(),
        name: tool.into(),
        arguments: arguments.clone(),
        parent_call_id: None,
    };
    let admission = Admission {
        run: &run,
        arguments: &arguments,
        maker,
        cwd,
    };
    gate.admit(admission).await
}

fn outcome(verdict: &Verdict) -> &str {
    match verdict {
        Verdict::Run => "run",
        Verdict::Refuse { details, .. } => details["approval"]["outcome"].as_str().unwrap(),
    }
}

#[tokio::test]
async fn reading_in_the_working_directory_needs_no_question() {
    let stage = Stage::new(policy(Mode::Ask, &[], &[]), Answer::Refused);
    for (tool, arguments, expected) in [
        ("read", json!({"path": "a"}), "run"),
        ("ls", json!({}), "run"),
        ("grep", json!({"pattern": "x"}), "run"),
        ("find", json!({"pattern": "x", "path": "."}), "run"),
        ("read", json!({"path": "../a"}), "refused"),
        ("ls", json!({"path": "/"}), "refused"),
        ("write", json!({"path": "a", "content": ""}), "refused"),
        ("edit", json!({"path": "a", "edits": []}), "refused"),
        ("bash", json!({"command": "ls"}), "refused"),
        ("deploy", json!({"to": "production"}), "refused"),
    ] {
        let verdict = stage.call(tool, arguments.clone()).await;
        assert_eq!(outcome(&verdict), expected, "{tool} {arguments}");
    }
    // A tool of an extension with the name of a built-in tool may do anything.
    let arguments = json!({"path": "a"});
    let verdict = admit(&stage.gate, "read", arguments, Maker::Other, &stage.cwd()).await;
    assert_eq!(outcome(&verdict), "refused");
}

#[tokio::test]
async fn deny_rules_win_in_every_mode() {
    for mode in [Mode::Ask, Mode::Auto, Mode::Deny] {
        let policy = policy(
            mode,
            &["bash", "read", "*"],
            &["bash(rm *)", "read(.env*)", "deploy"],
        );
        let stage = Stage::new(policy, Answer::AllowedForRun);
        for (tool, arguments) in [
            ("bash", json!({"command": "ls && rm x"})),
            ("read", json!({"path": "sub/.env"})),
            ("deploy", json!({})),
        ] {
            let verdict = stage.call(tool, arguments).await;
            assert_eq!(outcome(&verdict), "denied-by-rule", "{mode:?} {tool}");
        }
        assert_eq!(outcome(&stage.bash("ls").await), "run", "{mode:?}");
        assert_eq!(stage.asked.titles(), [""; 0], "{mode:?}");
    }
}

#[tokio::test]
async fn no_rule_and_no_answer_permits_a_descriptor() {
    for mode in [Mode::Ask, Mode::Auto, Mode::Deny] {
        let rules = ["*", "write", "write(/**)", "read(/dev/**)", "read(**)"];
        let stage = Stage::new(policy(mode, &rules, &[]), Answer::AllowedForRun);
        let link = stage.cwd().join("link");
        std::os::unix::fs::symlink("/dev/stdin", link).unwrap();
        let own = format!("/proc/{}/fd/1", std::process::id());
        for path in ["/dev/stdin", "/dev/fd/0", "/proc/self/fd/0", &own, "link"] {
            for tool in ["read", "write", "edit", "grep", "find", "ls"] {
                let verdict = stage.call(tool, json!({"path": path})).await;
                assert_eq!(outcome(&verdict), "not-a-file", "{mode:?} {tool} {path}");
            }
        }
        assert_eq!(stage.asked.titles(), [""; 0], "{mode:?}");
    }
}

#[tokio::test]
async fn a_refusal_names_the_rule_and_its_origin() {
    let mut policy = policy(Mode::Auto, &[], &[]);
    policy.deny = vec![Rule::parse("bash(rm *)", Origin::Project).unwrap()];
    let stage = Stage::new(policy, Answer::Refused);
    let verdict = stage.bash("rm x").await;
    let expected = Verdict::Refuse {
        text: "The rule \"bash(rm *)\" forbids this call.".into(),
        details: json!({"approval":
            {"outcome": "denied-by-rule", "rule": "bash(rm *)", "from": "project"}}),
    };
    assert_eq!(verdict, expected);
}

#[tokio::test]
async fn a_possible_match_of_a_deny_rule_is_asked() {
    for (mode, expected) in [
        (Mode::Auto, "refused"),
        (Mode::Ask, "refused"),
        (Mode::Deny, "not-allowed"),
    ] {
        let stage = Stage::new(
            policy(mode, &["*"], &["bash(rm *)", "grep(keys/**)"]),
            Answer::Refused,
        );
        for (tool, arguments) in [
            ("bash", json!({"command": "x `rm y`"})),
            ("bash", json!({"command": "$X y"})),
            ("grep", json!({"pattern": "x"})),
        ] {
            let verdict = stage.call(tool, arguments).await;
            assert_eq!(outcome(&verdict), expected, "{mode:?} {tool}");
        }
    }
}

#[tokio::test]
async fn deny_mode_never_asks() {
    let stage = Stage::new(
        policy(Mode::Deny, &["bash(git status)", "write(out/**)"], &[]),
        Answer::Allowed,
    );
    assert_eq!(outcome(&stage.bash("git status").await), "run");
    assert_eq!(outcome(&stage.bash("git push").await), "not-allowed");
    let inside = stage.call("write", json!({"path": "out/a/b"})).await;
    assert_eq!(outcome(&inside), "run");
    let escaping = stage.call("write", json!({"path": "out/../a"})).await;
    assert_eq!(outcome(&escaping), "not-allowed");
    assert_eq!(stage.asked.titles(), [""; 0]);
}

#[tokio::test]
async fn absence_is_not_refusal() {
    let expired = Stage::new(
        policy(Mode::Ask, &[], &[]),
        Answer::Absent(Absence::Expired),
    );
    let Verdict::Refuse { text, details } = expired.bash("x").await else {
        panic!("it was made");
    };
    assert_eq!(text, "No answer within 300 s, so this call was not run.");
    assert_eq!(
        details,
        json!({"approval": {"outcome": "expired", "timeoutSeconds": 300}})
    );
    let unattended = Approvals::new(policy(Mode::Ask, &[], &[]), Arc::new(Unattended));
    let verdict = admit(
        &unattended,
        "bash",
        json!({"command": "x"}),
        Maker::BuiltIn,
        Path::new("/"),
    )
    .await;
    assert_eq!(outcome(&verdict), "absent");
}

#[tokio::test]
async fn a_grant_covers_the_same_again_until_the_run_settles() {
    let stage = Stage::new(policy(Mode::Ask, &[], &[]), Answer::AllowedForRun);
    stage.gate.begin();
    std::os::unix::fs::symlink("a", stage.cwd().join("link")).unwrap();
    let calls = [
        ("bash", json!({"command": "make"}), true),
        ("bash", json!({"command": "make", "timeout": 5}), false),
        ("bash", json!({"command": "make "}), true),
        ("write", json!({"path": "a", "content": "1"}), true),
        ("write", json!({"path": "./a", "content": "2"}), false),
        ("write", json!({"path": "link", "content": "2"}), true),
        ("edit", json!({"path": "a"}), true),
        ("write", json!({"path": "b", "content": "1"}), true),
        ("deploy", json!({"to": "x"}), true),
        ("deploy", json!({"to": "x"}), false),
        ("deploy", json!({"to": "y"}), true),
    ];
    for (tool, arguments, asked) in &calls {
        let verdict = stage.call(tool, arguments.clone()).await;
        assert_eq!(outcome(&verdict), "run");
        assert_eq!(
            !stage.asked.titles().is_empty(),
            *asked,
            "{tool} {arguments}"
        );
    }
    for settles in [Gate::settled, Gate::begin] {
        settles(&stage.gate);
        stage.bash("make").await;
        assert_eq!(stage.asked.titles().len(), 1);
    }
}

#[tokio::test]
async fn a_grant_answers_an_identical_waiting_question() {
    let stage = Stage::new(policy(Mode::Ask, &[], &[]), Answer::AllowedForRun);
    join(stage.bash("make"), stage.bash("make")).await;
    assert_eq!(stage.asked.titles(), ["Allow bash: make?"]);
    let stage = Stage::new(policy(Mode::Ask, &[], &[]), Answer::Allowed);
    join(stage.bash("make"), stage.bash("make")).await;
    assert_eq!(stage.asked.titles().len(), 2);
}

#[tokio::test]
async fn a_dropped_question_does_not_block_the_next() {
    struct Silent;
    impl Ask for Silent {
        fn ask<'a>(&'a self, _: &'a Question, _: Duration) -> BoxFuture<'a, Answer> {
            Box::pin(std::future::pending())
        }
    }
    let gate = Approvals::new(policy(Mode::Ask, &[], &[]), Arc::new(Silent));
    for _ in 0..2 {
        let call = admit(
            &gate,
            "bash",
            json!({"command": "x"}),
            Maker::BuiltIn,
            Path::new("/"),
        );
        tokio::select! {
            biased;
            verdict = call => panic!("{verdict:?}"),
            () = tokio::task::yield_now() => {}
        }
    }
}

#[tokio::test]
async fn a_question_shows_the_call() {
    let stage = Stage::new(policy(Mode::Ask, &[], &[]), Answer::Refused);
    let outside = tempfile::tempdir().unwrap();
    let outside = outside.path().canonicalize().unwrap();
    std::os::unix::fs::symlink(&outside, stage.cwd().join("here")).unwrap();
    let long = "x".repeat(10_000);
    stage.bash("echo a\n\u{202e}rm -rf build").await;
    stage
        .call("write", json!({"path": "here/a", "content": ""}))
        .await;
    stage
        .call("write", json!({"path": "src/../a", "content": ""}))
        .await;
    stage.call("deploy", json!({"to": "x"})).await;
    stage.bash(&long).await;
    let titles = stage.asked.titles();
    assert_eq!(titles[0], "Allow bash: echo a⏎‹U+202E›rm -rf build?");
    assert_eq!(
        titles[1],
        format!("Allow write: here/a → {}/a?", outside.display())
    );
    assert_eq!(titles[2], "Allow write: src/../a?");
    assert_eq!(titles[3], "Allow deploy: {\"to\":\"x\"}?");
    assert!(titles[4].contains("6000 more characters"));
}

#[test]
fn an_invalid_rule_has_a_message() {
    for (rule, words) in [
        ("", "name of a tool"),
        ("(x)", "name of a tool"),
        ("my tool", "name of a tool"),
        ("bash(", "does not end with `)`"),
        ("bash(x) y", "does not end with `)`"),
        ("bash()", "nothing between the parentheses"),
        ("bash(a; b)", "one plain command"),
        ("bash(A=1 b)", "not with a variable"),
        ("deploy(x)", "only bash takes a command"),
        ("re*", "`*` stands for all tools"),
        ("read(../x)", "cannot contain `..`"),
        ("read([a)", "not valid"),
    ] {
        let error = Rule::parse(rule, Origin::Flag).unwrap_err();
        let message = error.to_string();
        assert!(
            message.contains(words) && message.contains(&format!("\"{rule}\"")),
            "{message}"
        );
    }
}

#[tokio::test]
async fn the_mode_can_change_while_the_session_is_open() {
    let stage = Stage::new(policy(Mode::Ask, &[], &["write"]), Answer::Refused);
    let command = json!({"command": "make"});
    assert_eq!(stage.gate.mode(), Mode::Ask);
    assert!(matches!(
        stage.call("bash", command.clone()).await,
        Verdict::Refuse { .. }
    ));
    assert_eq!(stage.asked.titles().len(), 1);
    stage.gate.set_mode(Mode::Auto);
    assert_eq!(stage.call("bash", command.clone()).await, Verdict::Run);
    let write = stage
        .call("write", json!({"path": "a", "content": ""}))
        .await;
    assert!(
        matches!(write, Verdict::Refuse { .. }),
        "rules stay: {write:?}"
    );
    stage.gate.set_mode(Mode::Deny);
    assert!(matches!(
        stage.call("bash", command).await,
        Verdict::Refuse { .. }
    ));
    assert!(stage.asked.titles().is_empty());
}

#[tokio::test]
async fn files_in_further_directories_are_read_without_a_question() {
    let further = tempfile::tempdir().unwrap();
    std::fs::write(further.path().join("a.txt"), "").unwrap();
    let path = further.path().join("a.txt");
    let read = json!({"path": path});
    let stage = Stage::new(policy(Mode::Deny, &[], &[]), Answer::Refused);
    assert!(matches!(
        stage.call("read", read.clone()).await,
        Verdict::Refuse { .. }
    ));
    let gate = Approvals::new(
        policy(Mode::Deny, &[], &[]),
        Asked::with(Answer::Refused) as _,
    )
    .with_roots(vec![further.path().to_owned()]);
    let cwd = stage.cwd();
    let verdict = admit(&gate, "read", read.clone(), Maker::BuiltIn, &cwd).await;
    assert_eq!(verdict, Verdict::Run);
    let verdict = admit(&gate, "write", read, Maker::BuiltIn, &cwd).await;
    assert!(matches!(verdict, Verdict::Refuse { .. }), "{verdict:?}");
}
