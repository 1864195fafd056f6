//! The tools of servers: their names, exposure, results and changes.

use pinion_testkit::mcp::HttpServer;
use serde_json::{Value, json};

use crate::stage::{Client, call, declared, results, script, stage, stage_with, text};

#[test]
fn direct_tools_are_declared_and_called() {
    let stage = stage(
        &[
            call("mcp__lab__echo", json!({"text": "hello"})),
            call("mcp__lab__fail", json!({"text": "no"})),
            call("mcp__lab__count", json!({})),
        ],
        json!({"lab": {"exposure": "direct"}}),
    );
    let mut client = Client::start(stage, &[]);
    let lines = client.run();
    let results = results(&lines);
    assert_eq!(text(&results[0]), "hello");
    assert_eq!(results[0]["toolName"], "mcp__lab__echo");
    assert_eq!(
        results[0]["details"],
        json!({"server": "lab", "tool": "echo"})
    );
    assert_eq!(
        (text(&results[1]), &results[1]["isError"]),
        ("no".into(), &json!(true))
    );
    let ends: Vec<&Value> = lines
        .iter()
        .filter(|line| line["type"] == "tool_execution_end")
        .collect();
    let failed = json!({"content": [{"type": "text", "text": "no"}], "isError": true});
    assert_eq!(ends[1]["result"]["structuredContent"], failed);
    assert_eq!(ends[1]["result"]["isError"], true);
    let counted = &ends[2]["result"]["structuredContent"]["structuredContent"];
    assert_eq!(*counted, json!({"numbers": [1, 2, 3]}));
    let requests = client.stage.server.requests();
    let names = declared(&requests[0]);
    assert!(names.contains(&"mcp__lab__echo".to_owned()), "{names:?}");
    assert!(!names.contains(&"codemode".to_owned()), "{names:?}");
    client.finish();
}

#[test]
fn by_default_scripts_call_the_tools_and_the_model_sees_codemode() {
    let stage = stage(
        &[script("return await tools.mcp__lab__echo({text: 'hi'})")],
        json!({"lab": {"description": "The laboratory"}}),
    );
    // The first prompt does not wait for such servers; the script does.
    let mut client = Client::start(stage, &["--tools", "read,codemode"]);
    let lines = client.run();
    let result = &results(&lines)[0];
    assert!(
        text(result).starts_with("Script completed\nWall time "),
        "{result}"
    );
    assert!(text(result).contains("\"text\":\"hi\""), "{result}");
    let requests = client.stage.server.requests();
    assert_eq!(declared(&requests[0]), ["read", "codemode"]);
    assert!(
        requests[0]
            .to_string()
            .contains("mcp__lab (call its tools in codemode scripts) The laboratory")
    );
    client.finish();
}

#[test]
fn codemode_becomes_active_when_a_server_connects_unless_that_is_turned_off() {
    for (on, expected) in [(true, true), (false, false)] {
        // The tool that is declared makes the first prompt wait for the server.
        let exposures = json!({"lab": {"toolExposure": {"echo": "direct", "fail": "hidden"}}});
        let stage = stage(&[], exposures);
        let file = stage.sandbox.agent().join("mcp.json");
        let mut config: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        config["autoEnableCodemode"] = on.into();
        std::fs::write(&file, config.to_string()).unwrap();
        let mut client = Client::start(stage, &[]);
        client.run();
        let names = declared(&client.stage.server.requests()[0]);
        assert_eq!(
            names.contains(&"codemode".to_owned()),
            expected,
            "{names:?}"
        );
        assert!(names.contains(&"mcp__lab__echo".to_owned()), "{names:?}");
        client.finish();
    }
}

#[test]
fn tool_search_declares_the_tools_that_it_finds() {
    let stage = stage(
        &[
            call("tool_search", json!({"query": "echo text", "limit": 1})),
            call("mcp__lab__echo", json!({"text": "found"})),
            call("tool_search", json!({"query": "zzz"})),
        ],
        json!({"lab": {"exposure": "deferred"}}),
    );
    let mut client = Client::start(stage, &["--tools", "+tool_search"]);
    let lines = client.run();
    let results = results(&lines);
    assert_eq!(results[0]["details"], json!({"loaded": ["mcp__lab__echo"]}));
    assert_eq!(text(&results[1]), "found");
    assert!(
        text(&results[2]).starts_with("No tool matches"),
        "{}",
        results[2]
    );
    let requests = client.stage.server.requests();
    assert!(!declared(&requests[0]).contains(&"mcp__lab__echo".to_owned()));
    assert!(declared(&requests[1]).contains(&"mcp__lab__echo".to_owned()));
    client.finish();
}

#[test]
fn flags_select_tools_and_turn_servers_off() {
    let servers = json!({"lab": {"exposure": "direct"}});
    for (flags, expected) in [
        (&["--no-mcp"][..], vec!["read", "bash", "edit", "write"]),
        (&["--tools", "read"], vec!["read"]),
        (
            &["--tools", "read,mcp__lab__f*"],
            vec!["read", "mcp__lab__fail", "mcp__lab__flood"],
        ),
        (&["--no-tools"], vec![]),
    ] {
        let mut client = Client::start(stage(&[], servers.clone()), flags);
        client.run();
        let request = &client.stage.server.requests()[0];
        let names = match request["body"].get("tools") {
            Some(_) => declared(request),
            None => Vec::new(),
        };
        assert_eq!(names, expected, "{flags:?}");
        client.finish();
    }
}

#[test]
fn changed_tools_are_refreshed() {
    let stage = stage(
        &[
            call("mcp__lab__grow", json!({})),
            json!({"steps": ["one"]}),
            call("mcp__lab__late", json!({"text": "x"})),
        ],
        json!({"lab": {"exposure": "direct"}}),
    );
    let mut client = Client::start(stage, &[]);
    client.run();
    // The change arrives between the prompts; nothing announces it to clients.
    std::thread::sleep(std::time::Duration::from_millis(1500));
    let lines = client.run();
    assert_eq!(text(&results(&lines)[0]), "late x");
    let last = client.stage.server.requests().pop().unwrap();
    let names = declared(&last);
    assert!(names.contains(&"mcp__lab__late".to_owned()), "{names:?}");
    assert!(!names.contains(&"mcp__lab__count".to_owned()), "{names:?}");
    client.finish();
}

#[test]
fn a_server_at_a_url_gets_the_headers_and_secrets_are_masked() {
    let directory = tempfile::tempdir().unwrap();
    let server = HttpServer::start(directory.path(), &[]);
    let stage = stage(
        &[
            call("mcp__web__echo", json!({"text": "over http"})),
            call("mcp__web__variable", json!({"text": "x-mode"})),
            call("mcp__web__variable", json!({"text": "x-api-token"})),
        ],
        json!({"web": {"url": server.url(), "exposure": "direct", "headers": {
            "X-Mode": "fast", "X-Api-Token": "${LAB_TOKEN}",
        }}}),
    );
    let mut command = stage.command(&["--rpc-dialect", "modern"]);
    command.env("LAB_TOKEN", "s3cret-t0ken-value");
    let process = pinion_testkit::Process::start(command);
    let mut client = Client { stage, process };
    let lines = client.run();
    let results = results(&lines);
    assert_eq!(text(&results[0]), "over http");
    assert_eq!(text(&results[1]), "fast");
    assert!(!text(&results[2]).contains("s3cret"), "{}", results[2]);
    client.finish();
}

#[test]
fn programs_get_configured_variables_and_no_other_secrets() {
    let stage = stage(
        &[
            call("mcp__lab__variable", json!({"text": "GIVEN"})),
            call("mcp__lab__variable", json!({"text": "OTHER_API_KEY"})),
        ],
        json!({"lab": {"exposure": "direct", "env": {"GIVEN": "${LAB}!"}}}),
    );
    let mut command = stage.command(&["--rpc-dialect", "modern"]);
    command
        .env("LAB", "value")
        .env("OTHER_API_KEY", "0123456789abcdef");
    let process = pinion_testkit::Process::start(command);
    let mut client = Client { stage, process };
    let lines = client.run();
    let results = results(&lines);
    assert_eq!(text(&results[0]), "value!");
    assert_eq!(text(&results[1]), "unset");
    client.finish();
}

#[test]
fn an_untrusted_project_has_no_servers() {
    for (trust, expected) in [("--no-approve", false), ("--approve", true)] {
        let stage = stage(&[], json!({}));
        let program = pinion_testkit::mcp::entry(&stage.sandbox.agent(), "");
        let mut entry = program;
        entry["exposure"] = "direct".into();
        std::fs::create_dir(stage.sandbox.work().join(".pi")).unwrap();
        let file = stage.sandbox.work().join(".pi/mcp.json");
        std::fs::write(&file, json!({"mcpServers": {"own": entry}}).to_string()).unwrap();
        let link = stage.sandbox.root().join("pi");
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_pinion"), &link).unwrap();
        let mut command = stage.command(&["--rpc-dialect", "modern", trust]);
        let arguments: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
        let environment: Vec<_> = command
            .get_envs()
            .map(|(n, v)| (n.to_owned(), v.map(ToOwned::to_owned)))
            .collect();
        let directory = command.get_current_dir().map(ToOwned::to_owned);
        command = std::process::Command::new(link);
        command.args(arguments).env_clear();
        for (name, value) in environment {
            if let Some(value) = value {
                command.env(name, value);
            }
        }
        command.current_dir(directory.unwrap());
        let process = pinion_testkit::Process::start(command);
        let mut client = Client { stage, process };
        client.run();
        let names = declared(&client.stage.server.requests()[0]);
        assert_eq!(
            names.contains(&"mcp__own__echo".to_owned()),
            expected,
            "{names:?}"
        );
        let warned = client.process.stderr().contains("the project is untrusted");
        assert_eq!(warned, !expected, "{}", client.process.stderr());
        client.finish();
    }
}

#[test]
fn a_long_result_keeps_its_ends() {
    let stage = stage(
        &[
            call("mcp__lab__long", json!({})),
            script("const r = await tools.mcp__lab__long({}); return r.content[0].text.length"),
        ],
        json!({"lab": {"exposure": "direct"}}),
    );
    let mut client = Client::start(stage, &["--tools", "+codemode"]);
    let lines = client.run();
    let results = results(&lines);
    let shown = text(&results[0]);
    assert!(
        shown.len() < 21_000 && shown.contains("chars truncated"),
        "{}",
        shown.len()
    );
    let path = results[0]["details"]["fullOutputPath"].as_str().unwrap();
    assert_eq!(std::fs::read_to_string(path).unwrap().len(), 50_008);
    assert!(text(&results[1]).ends_with("50008"), "{}", results[1]);
    client.finish();
}

#[test]
fn approvals_apply_to_tools_of_servers() {
    let settings = json!({"approvals": {"mode": "deny", "allow": ["mcp__lab__echo"]}});
    let stage = stage_with(
        &[
            call("mcp__lab__echo", json!({"text": "yes"})),
            call("mcp__lab__fail", json!({"text": "zebra"})),
        ],
        json!({"lab": {"exposure": "direct"}}),
        settings,
    );
    let mut client = Client::start(stage, &[]);
    let lines = client.run();
    let results = results(&lines);
    assert_eq!(text(&results[0]), "yes");
    assert_eq!(results[1]["isError"], true);
    assert!(!text(&results[1]).contains("zebra"), "{}", results[1]);
    client.finish();
}
