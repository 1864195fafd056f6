//! Spans of a prompt, of its requests and tools, and of a fleet.

use std::fs;
use std::process::{Output, Stdio};

use pinion_testkit::Sandbox;
use serde_json::{Value, json};

use crate::receiver::Receiver;
use crate::support::{args, offline_sandbox, pinion, script};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";

fn run(sandbox: &Sandbox, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = pinion().command(sandbox, &args(arguments));
    command.envs(variables.iter().copied()).stdin(Stdio::null());
    command.output().unwrap()
}

/// Returns a prompt whose only tool call writes its trace to a file.
fn one_call() -> String {
    script(&json!({"turns": [
        [{"tool": "bash", "args": {"command": "echo \"trace=$TRACEPARENT\" > trace.txt"}}],
        [{"text": "done"}],
    ]}))
}

#[test]
fn a_prompt_is_one_trace_that_continues_in_its_tools() {
    let sandbox = offline_sandbox(&json!({}));
    let receiver = Receiver::start();
    let prompt = one_call();
    let ran = run(
        &sandbox,
        &["--model", "offline/demo", "-p", &prompt],
        &[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", &receiver.url),
            ("OTEL_SERVICE_NAME", "bot"),
            ("TRACEPARENT", &format!("00-{TRACE}-{PARENT}-01")),
        ],
    );
    assert_eq!(
        (&ran.stdout[..], &ran.stderr[..]),
        (&b"done\n"[..], &b""[..])
    );
    let spans = receiver.spans();
    let run = spans.one("invoke_agent pinion");
    assert_eq!((run.trace.as_str(), run.parent.as_str()), (TRACE, PARENT));
    assert_eq!(run.resource["service.name"], "bot");
    assert_eq!(run.attributes["gen_ai.operation.name"], "invoke_agent");
    assert_eq!(run.attributes["gen_ai.request.model"], "demo");
    assert_eq!(run.attributes["pinion.run.outcome"], "done");
    let conversation = &run.attributes["gen_ai.conversation.id"];
    assert!(conversation.as_str().is_some_and(|id| id.len() > 8));
    let requests = spans.named("chat demo");
    assert_eq!(requests.len(), 2);
    let mut tokens = 0;
    for request in &requests {
        assert_eq!(request.kind, 3, "a client");
        assert_eq!((&request.trace, &request.parent), (&run.trace, &run.span));
        assert_eq!(request.attributes["gen_ai.provider.name"], "offline");
        assert_eq!(&request.attributes["gen_ai.conversation.id"], conversation);
        assert!(request.attributes["gen_ai.response.finish_reasons"].is_array());
        tokens += request.attributes["gen_ai.usage.input_tokens"]
            .as_i64()
            .unwrap();
    }
    assert_eq!(run.attributes["gen_ai.usage.input_tokens"], tokens);
    let tool = spans.one("execute_tool bash");
    assert_eq!(tool.parent, run.span);
    assert_eq!(tool.attributes["gen_ai.tool.name"], "bash");
    assert!(!tool.failed);
    assert_eq!(spans.0.len(), 4, "{spans:#?}");
    let seen = fs::read_to_string(sandbox.work().join("trace.txt")).unwrap();
    assert_eq!(seen, format!("trace=00-{TRACE}-{}-01\n", tool.span));
    // Nothing that was said or printed leaves the process.
    assert!(!format!("{spans:?}").contains("trace.txt"));
}

#[test]
fn a_failed_tool_is_a_failed_span() {
    let sandbox = offline_sandbox(&json!({}));
    let receiver = Receiver::start();
    let prompt = script(&json!({"turns": [
        [{"tool": "read", "args": {"path": "missing"}}], [{"text": "done"}],
    ]}));
    run(
        &sandbox,
        &["--model", "offline/demo", "-p", &prompt],
        &[(
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
            &format!("{}/v1/traces", receiver.url),
        )],
    );
    let spans = receiver.spans();
    let tool = spans.one("execute_tool read");
    assert!(tool.failed);
    assert_eq!(tool.attributes["error.type"], "tool_error");
}

#[test]
fn without_an_endpoint_there_is_no_trace() {
    let sandbox = offline_sandbox(&json!({}));
    let prompt = one_call();
    for variables in [&[][..], &[("OTEL_SERVICE_NAME", "bot")]] {
        run(
            &sandbox,
            &["--model", "offline/demo", "-p", &prompt],
            variables,
        );
        let seen = fs::read_to_string(sandbox.work().join("trace.txt")).unwrap();
        assert_eq!(seen, "trace=\n");
    }
}

#[test]
fn a_trace_that_is_not_sampled_is_passed_on_and_not_sent() {
    let sandbox = offline_sandbox(&json!({}));
    let receiver = Receiver::start();
    let prompt = one_call();
    run(
        &sandbox,
        &["--model", "offline/demo", "-p", &prompt],
        &[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", &receiver.url),
            ("OTEL_TRACES_SAMPLER", "always_off"),
        ],
    );
    let seen = fs::read_to_string(sandbox.work().join("trace.txt")).unwrap();
    assert!(
        seen.starts_with("trace=00-") && seen.ends_with("-00\n"),
        "{seen}"
    );
    assert!(receiver.spans().0.is_empty());
}

/// Clients of pi read stdout and stderr; variables that other programs set too must not change them.
#[test]
fn wrong_settings_and_receivers_that_are_away_change_nothing() {
    let sandbox = offline_sandbox(&json!({}));
    let prompt = one_call();
    for variables in [
        &[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ][..],
        &[("OTEL_EXPORTER_OTLP_ENDPOINT", "localhost:4317")],
        &[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")],
    ] {
        let ran = run(
            &sandbox,
            &["--model", "offline/demo", "-p", &prompt],
            variables,
        );
        assert_eq!(
            (&ran.stdout[..], &ran.stderr[..]),
            (&b"done\n"[..], &b""[..])
        );
    }
}

#[test]
fn a_fleet_is_a_workflow_with_an_agent_for_each_child() {
    let sandbox = offline_sandbox(&json!({}));
    let receiver = Receiver::start();
    let child = |name: &str, isolation: &str| -> Value {
        json!({"name": name, "prompt": "Say hello.", "model": "offline/demo", "isolation": isolation})
    };
    let plan = json!({"name": "two", "children": [child("a", "process"), child("b", "task")]});
    fs::write(sandbox.work().join("plan.yaml"), plan.to_string()).unwrap();
    let ran = run(
        &sandbox,
        &["fleet", "run", "plan.yaml", "--quiet"],
        &[("OTEL_EXPORTER_OTLP_ENDPOINT", &receiver.url)],
    );
    assert_eq!(ran.status.code(), Some(0), "{ran:?}");
    let spans = receiver.spans();
    let fleet = spans.one("invoke_workflow two");
    assert_eq!(fleet.attributes["pinion.fleet.outcome"], "finished");
    let agents = spans.named("invoke_agent pinion");
    assert_eq!(agents.len(), 2, "{spans:#?}");
    for name in ["a", "b"] {
        let attempt = spans.one(&format!("invoke_agent {name}"));
        assert_eq!(
            (&attempt.trace, &attempt.parent),
            (&fleet.trace, &fleet.span)
        );
        let run = agents.iter().find(|run| run.parent == attempt.span);
        assert_eq!(run.unwrap().trace, fleet.trace);
    }
}
