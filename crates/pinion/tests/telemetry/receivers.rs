//! The same with the programs of others: the messages of OpenTelemetry for Python, and Prometheus.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::receiver::{Span, Spans};
use crate::stage::{HANG, Home};
use crate::support::script;

/// More spans than the test makes.
const MAX_SPANS: usize = 1000;

/// A process that is killed when dropped.
struct Killed(std::process::Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
#[ignore = "needs opentelemetry-proto for Python"]
fn a_prompt_with_a_tool_a_clip_and_a_fleet_is_one_trace_at_each_receiver() {
    let python = std::env::var_os("PINION_OTLP_PYTHON").unwrap();
    let home = Home::new();
    home.write("receiver.py", include_str!("receiver.py"));
    let mut receiver = Command::new(python);
    receiver
        .arg(home.path("receiver.py"))
        .stdout(Stdio::piped());
    let mut receiver = Killed(receiver.spawn().unwrap());
    let printed = BufReader::new(receiver.0.stdout.take().unwrap()).lines();
    let (sender, lines) = std::sync::mpsc::sync_channel(MAX_SPANS);
    std::thread::spawn(move || {
        printed
            .map_while(Result::ok)
            .try_for_each(|line| sender.send(line))
    });
    let url = lines.recv_timeout(HANG).unwrap();

    let otlp = [("OTEL_EXPORTER_OTLP_ENDPOINT", url.as_str())];
    home.write_probe("probe");
    let mut serve = home.command("pinion", &["hub", "serve", "--port", "0"]);
    serve.envs(otlp);
    let hub = crate::stage::Hub::start(serve, home.path("serve.err"));
    home.run(&["clip", "add", "./probe"]).fine();
    home.write(
        "plan.json",
        &json!({"name": "inner", "children": [
            {"name": "child", "prompt": "Say hello.", "model": "offline/demo"},
        ]})
        .to_string(),
    );
    let binary = home.path("pinion").display().to_string();
    let prompt = script(&json!({"turns": [
        [{"tool": "probe_echo", "args": {"title": "hi"}}],
        [{"tool": "bash", "args": {"command": format!("{binary} fleet run plan.json --quiet")}}],
        [{"text": "done"}],
    ]}));
    let mut agent = home.command("pinion", &["-p", "--model", "offline/demo"]);
    let ran = agent
        .args(["--hub", &hub.url, "--clips", "probe", &prompt])
        .envs(otlp)
        .output();
    let ran = ran.unwrap();
    assert_eq!(ran.stdout, b"done\n", "{ran:?}");
    let mut spans = Spans::default();
    // The hub sends what it has every five seconds.
    while spans.named("probe/echo").is_empty() || spans.named("invoke_workflow inner").is_empty() {
        let line = lines.recv_timeout(HANG);
        spans.0.push(Span::from_line(
            &line.unwrap_or_else(|_| panic!("{spans:#?}")),
        ));
    }
    drop(hub);
    let runs = spans.named("invoke_agent pinion");
    let run = runs.iter().find(|run| run.parent.is_empty()).unwrap();
    let clip_tool = spans.one("execute_tool probe_echo");
    assert_eq!(clip_tool.parent, run.span);
    let clip = spans.one("probe/echo");
    assert_eq!((&clip.trace, &clip.parent), (&run.trace, &clip_tool.span));
    assert_eq!(
        (clip.kind, &clip.attributes["rpc.response.status_code"]),
        (2, &json!("ok"))
    );
    let shell = spans.one("execute_tool bash");
    let fleet = spans.one("invoke_workflow inner");
    assert_eq!((&fleet.trace, &fleet.parent), (&run.trace, &shell.span));
    let attempt = spans.one("invoke_agent child");
    assert_eq!(attempt.parent, fleet.span);
    assert!(runs.iter().any(|run| run.parent == attempt.span));
    for span in &spans.0 {
        assert_eq!(span.trace, run.trace, "{span:?}");
        assert_eq!(span.resource["service.name"], "pinion");
    }
}

#[test]
#[ignore = "needs Prometheus"]
fn prometheus_scrapes_a_hub_with_a_token() {
    let home = Home::new();
    let hub = home.serve();
    home.run(&["invoke", "scheduler", "list"]).fine();
    let created = home
        .run(&["hub", "token", "create", "--kind", "metrics"])
        .json();
    home.write("token", created["token"].as_str().unwrap());
    let page = Command::new("curl")
        .args(["-sf", "-H"])
        .arg(format!(
            "Authorization: Bearer {}",
            created["token"].as_str().unwrap()
        ))
        .arg(format!("{}/metrics", hub.url))
        .output()
        .unwrap();
    home.write("page", &String::from_utf8(page.stdout).unwrap());
    let checked = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(std::fs::File::open(home.path("page")).unwrap())
        .output()
        .unwrap();
    assert!(
        checked.status.success() && checked.stderr.is_empty(),
        "{checked:?}"
    );

    let target = hub.url.strip_prefix("http://").unwrap();
    home.write(
        "prometheus.yml",
        &json!({"scrape_configs": [{
            "job_name": "pinion",
            "scrape_interval": "1s",
            "authorization": {"credentials_file": home.path("token")},
            "static_configs": [{"targets": [target]}],
        }]})
        .to_string(),
    );
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let server = Command::new("prometheus")
        .arg(format!(
            "--config.file={}",
            home.path("prometheus.yml").display()
        ))
        .arg(format!(
            "--storage.tsdb.path={}",
            home.path("data").display()
        ))
        .arg(format!("--web.listen-address=127.0.0.1:{port}"))
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let _server = Killed(server);
    let query = "pinion_hub_calls_total{clip=\"scheduler\",code=\"ok\"}";
    let begun = Instant::now();
    let found = loop {
        let answer = Command::new("curl")
            .args(["-s", "-G", "--data-urlencode", &format!("query={query}")])
            .arg(format!("http://127.0.0.1:{port}/api/v1/query"))
            .output()
            .unwrap();
        let answer: Value = serde_json::from_slice(&answer.stdout).unwrap_or_default();
        if answer["data"]["result"][0].is_object() {
            break answer["data"]["result"][0]["value"][1].clone();
        }
        assert!(begun.elapsed() < HANG, "{answer}");
        std::thread::sleep(Duration::from_millis(200));
    };
    assert_eq!(found, "1");
}
