//! Every request is answered, every run ends, and nothing stays behind: the whole program under random use, stalled
//! providers and signals.

#![allow(clippy::expect_used, reason = "a test")]

use std::collections::HashMap;
use std::process::Stdio;
use std::time::Duration;

use pinion_testkit::fault::pipe::{Reader, Reading};
use pinion_testkit::fault::proc::{end, left_behind};
use pinion_testkit::transcript::fits;
use pinion_testkit::{Exit, Process, Signal, Stage};
use serde_json::{Value, json};

const BINARY: &str = env!("CARGO_BIN_EXE_pinion");
const PATIENCE: Duration = Duration::from_secs(30);

/// Numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

fn random_command(dice: &mut Dice) -> Value {
    let pool = [
        json!({"type": "get_state"}),
        json!({"type": "get_messages"}),
        json!({"type": "get_session_stats"}),
        json!({"type": "get_last_assistant_text"}),
        json!({"type": "get_available_models"}),
        json!({"type": "get_commands"}),
        json!({"type": "prompt", "message": "Hello."}),
        json!({"type": "prompt", "message": "Me first.", "streamingBehavior": "steer"}),
        json!({"type": "prompt", "message": "Me later.", "streamingBehavior": "followUp"}),
        json!({"type": "steer", "message": "Left."}),
        json!({"type": "follow_up", "message": "And then."}),
        json!({"type": "abort"}),
        json!({"type": "abort_retry"}),
        json!({"type": "abort_bash"}),
        json!({"type": "bash", "command": "echo quick"}),
        json!({"type": "bash", "command": "sleep 0.05; echo slow"}),
        json!({"type": "set_model", "provider": "mock", "modelId": "mock-2"}),
        json!({"type": "set_model", "provider": "mock", "modelId": "absent"}),
        json!({"type": "cycle_model"}),
        json!({"type": "set_thinking_level", "level": "low"}),
        json!({"type": "cycle_thinking_level"}),
        json!({"type": "set_auto_retry", "enabled": true}),
        json!({"type": "set_session_name", "name": "n"}),
        json!({"type": "new_session"}),
        json!({"type": "compact"}),
        json!({"type": "get_fork_messages"}),
        json!({"type": "fork", "entryId": "nowhere"}),
        json!({"type": "prompt"}),
        json!({"type": "no_such_command"}),
        json!({"type": 5}),
    ];
    pool[dice.below(pool.len())].clone()
}

#[test]
fn every_request_is_answered_exactly_once_whatever_is_going_on() {
    for seed in 0..6 {
        let turn = json!({"steps": [
            {"text": "Some words to stream.", "chunk": 3},
            {"tool": "bash", "args": {"command": "sleep 0.02; echo done"}},
        ]});
        let plain = json!({"steps": [{"text": "The end.", "chunk": 2}]});
        let turns: Vec<Value> = (0..60)
            .flat_map(|_| [turn.clone(), plain.clone()])
            .collect();
        let stage = Stage::new(
            BINARY,
            json!({"pace_ms": 1, "on_exhausted": "repeat_last", "turns": turns}),
        );
        let mut process = stage.start(&[]);
        let mut dice = Dice(seed);
        let count = 120;
        for number in 0..count {
            let mut command = random_command(&mut dice);
            command["id"] = json!(number);
            process.send(&command);
            if dice.below(4) == 0 {
                std::thread::sleep(Duration::from_millis(dice.below(30) as u64));
            }
        }
        let answered = |line: &Value| line["type"] == "response" && line["id"].is_number();
        process.find(0, count, PATIENCE, answered);
        // One more request, after which nothing of the others can still be under way.
        process.ask(json!({"id": "quiet", "type": "abort"}));
        process.close_stdin();
        assert_eq!(process.wait(PATIENCE), Some(Exit::Code(0)), "seed {seed}");
        process.drain(PATIENCE);
        let mut answers: HashMap<i64, usize> = HashMap::new();
        let (mut starts, mut ends) = (0, 0);
        for line in process.lines() {
            if let (true, Some(id)) = (answered(&line.value), line.value["id"].as_i64()) {
                *answers.entry(id).or_default() += 1;
            }
            starts += usize::from(line.value["type"] == "agent_start");
            ends += usize::from(line.value["type"] == "agent_end");
        }
        let wrong: Vec<i64> = (0..count as i64)
            .filter(|id| answers.get(id).copied() != Some(1))
            .collect();
        assert!(
            wrong.is_empty(),
            "seed {seed}: not answered exactly once: {wrong:?}"
        );
        assert_eq!(starts, ends, "seed {seed}: every run that began has ended");
    }
}

fn quick_timeouts() -> Value {
    json!({
        "retry": {"enabled": false, "provider": {"timeoutMs": 300, "maxRetries": 0}},
        "timeouts": {"idleMs": 300, "connectMs": 1000},
    })
}

#[test]
fn a_provider_that_stops_talking_ends_the_run_with_an_error() {
    let places = [
        json!("connect"),
        json!("headers"),
        json!({"event": 3}),
        json!("utf8"),
    ];
    for place in places {
        let turn =
            json!({"steps": [{"text": "grüße an alle", "chunk": 2}], "fault": {"at": place}});
        let next = json!({"steps": ["All is well."]});
        let stage = Stage::with_settings(BINARY, json!({"turns": [turn, next]}), quick_timeouts());
        let mut process = stage.start(&["--no-session"]);
        process.ask(json!({"type": "prompt", "message": "Go."}));
        let failed =
            json!({"type": "message_end", "message": {"role": "assistant", "stopReason": "error"}});
        let message = process.expect(0, &failed).value;
        assert!(
            message["message"]["errorMessage"].is_string(),
            "{place}: {message}"
        );
        process.expect(0, &json!({"type": "agent_end"}));
        assert!(
            stage.server.wait_until_idle(PATIENCE),
            "{place}: the connection is given up"
        );
        // The session is alive.
        let from = process.line_count();
        process.ask(json!({"type": "prompt", "message": "Again."}));
        process.expect(
            from,
            &json!({"type": "message_end", "message": {"stopReason": "stop"}}),
        );
    }
}

#[test]
fn the_state_can_be_asked_for_while_text_streams_and_while_a_command_runs() {
    let stage = Stage::new(
        BINARY,
        json!({"turns": [
            {"steps": [{"text": ["begun", {"gate": "text"}]},
                       {"tool": "bash", "args": {"command": "echo running; while [ ! -e go ]; do sleep 0.01; done"}}]},
            {"steps": ["Done."]},
        ]}),
    );
    let mut process = stage.start(&[]);
    process.ask(json!({"type": "prompt", "message": "Go."}));
    process.expect(
        0,
        &json!({"type": "message_update", "assistantMessageEvent": {"type": "text_delta"}}),
    );
    for _ in 0..20 {
        let state = process.ask(json!({"type": "get_state"}));
        assert!(
            fits(&json!({"data": {"isStreaming": true}}), &state),
            "{state}"
        );
    }
    stage.server.release("text");
    process.expect(0, &json!({"type": "tool_execution_update"}));
    for _ in 0..20 {
        let state = process.ask(json!({"type": "get_state"}));
        assert!(
            fits(&json!({"data": {"isStreaming": true}}), &state),
            "{state}"
        );
    }
    std::fs::write(stage.sandbox.work().join("go"), "").expect("a file");
    process.expect(0, &json!({"type": "agent_end"}));
}

/// Starts children in all the ways that are known to survive, and waits.
const STUBBORN: &str = "setsid sleep 301 & nohup sleep 302 >/dev/null 2>&1 & \
                        (setsid sh -c 'sleep 303 & sleep 304' &) ; echo begun; sleep 305";

fn with_stubborn_children() -> (Stage, Process) {
    let turns = json!([{"steps": [{"tool": "bash", "args": {"command": STUBBORN}}]}]);
    let stage = Stage::new(BINARY, json!({"turns": turns}));
    let mut process = stage.start(&[]);
    process.ask(json!({"type": "prompt", "message": "Go."}));
    process.expect(0, &json!({"type": "tool_execution_update"}));
    (stage, process)
}

fn nothing_left(stage: &Stage, how: &str) {
    let left = left_behind(stage.sandbox.marker(), PATIENCE);
    // A test that fails must not leave them behind either.
    for found in &left {
        end(found.pid);
    }
    assert!(
        left.is_empty(),
        "after {how} these are still running: {left:?}"
    );
}

#[test]
fn children_end_with_the_program_however_it_ends() {
    let ends = [
        (Signal::SIGKILL, Exit::Signal(9)),
        (Signal::SIGTERM, Exit::Code(143)),
        (Signal::SIGHUP, Exit::Code(129)),
    ];
    for (signal, expected) in ends {
        let (stage, mut process) = with_stubborn_children();
        process.signal(signal);
        assert_eq!(process.wait(PATIENCE), Some(expected), "{signal}");
        nothing_left(&stage, signal.as_str());
    }
}

#[test]
fn children_end_when_the_run_is_aborted() {
    let (stage, mut process) = with_stubborn_children();
    process.ask(json!({"type": "abort"}));
    process.close_stdin();
    assert_eq!(process.wait(PATIENCE), Some(Exit::Code(0)));
    nothing_left(&stage, "an abort");
}

#[test]
fn children_end_when_the_program_is_killed_at_any_moment() {
    let mut dice = Dice(7);
    for round in 0..12 {
        let command = "for i in 1 2 3; do setsid sleep 30$i & done; echo begun; sleep 300";
        let turns = json!([{"steps": ["text", {"tool": "bash", "args": {"command": command}}]}]);
        let stage = Stage::new(BINARY, json!({"pace_ms": 2, "turns": turns}));
        let mut process = stage.start(&[]);
        process.send(&json!({"type": "prompt", "message": "Go."}));
        std::thread::sleep(Duration::from_millis(20 + dice.below(250) as u64));
        process.signal(Signal::SIGKILL);
        process.wait(PATIENCE);
        nothing_left(&stage, &format!("SIGKILL in round {round}"));
    }
}

#[test]
fn a_reader_that_goes_away_ends_the_program_and_its_children() {
    for bytes in [1, 500, 5000] {
        let turns = json!([{"steps": [{"text": {"delta": "many words ", "count": 400}},
                                      {"tool": "bash", "args": {"command": STUBBORN}}]}]);
        let stage = Stage::new(BINARY, json!({"pace_ms": 1, "turns": turns}));
        let mut child = stage
            .command(&[])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program");
        let mut stdin = child.stdin.take().expect("a pipe");
        let reader = Reader::start(
            child.stdout.take().expect("a pipe"),
            Reading::CloseAfter(bytes),
        );
        use std::io::Write;
        writeln!(stdin, "{}", json!({"type": "prompt", "message": "Go."})).expect("a write");
        assert_eq!(reader.finish(PATIENCE).len() as u64, bytes);
        nothing_left(&stage, "the end of its reader");
        child.wait().expect("a child");
        drop(stdin);
    }
}

#[test]
fn a_prompt_on_the_command_line_does_not_wait_for_a_silent_input() {
    let stage = Stage::new(BINARY, json!({"turns": [{"steps": ["The answer."]}]}));
    let args = ["-p".to_owned(), "A question.".to_owned()];
    let mut process = stage.program.start(&stage.sandbox, &args);
    // Its input stays open and silent.
    assert_eq!(
        process.wait(PATIENCE),
        Some(Exit::Code(0)),
        "{}",
        process.stderr()
    );
    process.drain(PATIENCE);
    assert_eq!(
        process.lines()[0].value,
        json!({"__unparsed": "The answer."})
    );
}
