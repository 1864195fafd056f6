//! Scheduled calls, through the command line.

use serde_json::{Value, json};

use crate::stage::Home;

#[test]
fn a_command_is_called_by_the_clock() {
    let home = Home::new();
    let mut hub = home.serve_probe();
    let pinix = |words: &[&str]| home.run_as("pinix", words);
    let add = [
        "schedule",
        "add",
        "tick",
        "probe",
        "echo",
        "--cron",
        "* * * * * *",
    ];
    let more = ["--input", "{\"title\":\"x\"}", "--desc", "every second"];
    let added = pinix(&[&add[..], &more[..]].concat()).json();
    assert_eq!(added, json!({"id": "tick", "status": "created"}));
    let history = || home.run(&["invoke", "scheduler", "history", "tick"]).json();
    home.until("a call", || {
        !history()["executions"].as_array().unwrap().is_empty()
    });
    let last = history()["executions"][0].clone();
    assert_eq!(last["success"], true, "{last}");
    let output: Value = serde_json::from_str(last["output"].as_str().unwrap()).unwrap();
    assert_eq!(output, json!({"title": "x"}));
    let listed = pinix(&["schedule", "list"]).json();
    assert_eq!(listed["schedules"][0]["description"], "every second");
    assert_eq!(
        pinix(&["schedule", "pause", "tick"]).json()["status"],
        "paused"
    );
    hub.stop();

    // The next hub reads the stored schedules.
    let _hub = home.serve();
    let listed = pinix(&["schedule", "list"]).json();
    assert_eq!(listed["schedules"][0]["enabled"], false);
    assert!(!history()["executions"].as_array().unwrap().is_empty());
    pinix(&["schedule", "remove", "tick"]).fine();
    assert_eq!(
        pinix(&["schedule", "list"]).json(),
        json!({"schedules": []})
    );
}

#[test]
fn mistakes_are_told() {
    let home = Home::new();
    let _hub = home.serve();
    let pinix = |words: &[&str]| home.run_as("pinix", words);
    let said = pinix(&["schedule", "add", "a", "b", "c", "--cron", "soon"]).failed(1);
    assert!(said.contains("five fields"), "{said}");
    let said = pinix(&["schedule", "run", "nothing"]).failed(1);
    assert!(said.contains("there is no schedule \"nothing\""), "{said}");
    let said = pinix(&["schedule"]).failed(1);
    assert!(said.contains("list, add, remove"), "{said}");
}
