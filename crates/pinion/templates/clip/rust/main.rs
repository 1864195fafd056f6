// main.rs: says everything in capitals.  clip.json: {"runtime": "exec", "main": "shout"}
use serde_json::{Value, json};

fn main() {
    let commands = json!([{"name": "shout", "description": "Say it louder",
        "input": {"text": {"type": "string", "required": true}}}]);
    println!("{}", json!({"type": "register", "manifest": {"commands": commands}}));
    for line in std::io::stdin().lines().map_while(Result::ok) {
        let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
        if message["type"] != "invoke" {
            continue;
        }
        let id = &message["id"];
        println!("{}", match (message["command"].as_str(), message["input"]["text"].as_str()) {
            (Some("shout"), Some(text)) => json!({"type": "result", "id": id, "output": text.to_uppercase()}),
            (Some("shout"), None) => json!({"type": "error", "id": id, "error": "text is missing"}),
            (other, _) => json!({"type": "error", "id": id, "error": format!("unknown command: {other:?}")}),
        });
    }
}
