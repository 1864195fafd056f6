//! What models really do, over each kind of interface: they think, refuse, break off in the middle of a call, call tools.

use pinion_testkit::ModelServer;
use serde_json::json;

use crate::stage::Home;

#[test]
fn thinking_over_completions_is_printed_once_and_on_lines_of_its_own() {
    let server = ModelServer::start(json!({"turns": [
        {"steps": [{"thinking": "3×4", "chunk": 2}, {"text": "12.", "chunk": 2}]}]}));
    let ran = Home::of(&server, "openai").run(&["run-command", "say.yaml"]);
    assert_eq!(ran.stdout, "3×4\n12.\n", "{}", ran.stderr);
}
