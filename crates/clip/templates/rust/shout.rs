//! shout.rs: returns a text in upper case.  clip.json: {"runtime": "exec", "main": "shout"}, Cargo.toml: serde_json = "1"
use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let input = json!({"text": {"type": "string", "required": true}});
    let manifest =
        json!({"commands": [{"name": "shout", "description": "Say it louder", "input": input}]});
    println!("{}", json!({"type": "register", "manifest": manifest}));
    for line in std::io::stdin().lines() {
        let call: Value = serde_json::from_str(&line?)?;
        if call["type"] != "invoke" {
            continue;
        }
        let (id, command) = (&call["id"], call["command"].as_str().unwrap_or_default());
        let text = call["input"]["text"].as_str().unwrap_or_default();
        let answer = match command {
            "shout" => json!({"type": "result", "id": id, "output": text.to_uppercase()}),
            _ => json!({"type": "error", "id": id, "error": format!("unknown command: {command}")}),
        };
        println!("{answer}");
    }
    Ok(())
}
