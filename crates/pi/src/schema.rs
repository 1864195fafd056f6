//! The published schemas: one document per dialect, generated from the types that print and parse its lines.
//!
//! The document describes pinion's output; `$defs/input` describes the client's input. Types have additional keywords,
//! which `fit.rs` interprets and removes: `x-since` and `x-until` (the dialects that have a line or a member),
//! `x-always` (never missing there), `x-nullable` (missing or null), `x-optional` and `x-suffix`.

mod fit;
mod sessions;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

pub use self::sessions::sessions_schema_text;
use crate::commands::Name;
use crate::dialect::Dialect;
use crate::early::{EarlyLine, commands::Name as EarlyName};
use crate::lines::EventLine;
use crate::shapes::{Choice, Dialog, SessionHeader, UpdateLine};

/// Returns the JSON Schema of all lines of a dialect.
fn schema(dialect: Dialect) -> Value {
    let mut document = Document::new(dialect);
    let mut printed = Vec::new();
    match dialect {
        Dialect::Early => {
            for name in EarlyName::ALL {
                let members = name.members(&mut document.generator);
                document.command(name.word(), members);
            }
        }
        Dialect::Classic | Dialect::Modern => {
            for name in Name::ALL {
                let members = name.members(&mut document.generator);
                document.command(name.word(), members);
                let data = name.data(&mut document.generator);
                document.response(name.word(), data);
            }
            document.failure();
            printed.push("response");
        }
    }
    printed.extend(["event", "sessionHeader"]);
    let mut input = vec!["command"];
    if dialect != Dialect::Early {
        printed.push("extensionUiRequest");
        input.push("extensionUiResponse");
    }
    document.finish(&printed, &input)
}

/// Returns the schema of a dialect as it is published in `docs/schemas`, which the binary includes.
pub fn schema_text(dialect: Dialect) -> String {
    let mut text = format!("{:#}", schema(dialect));
    text.push('\n');
    text
}

struct Document {
    dialect: Dialect,
    generator: SchemaGenerator,
    commands: Vec<(String, Value)>,
    responses: Vec<(String, Option<Value>)>,
    /// Definitions without a type.
    own: Map<String, Value>,
}

impl Document {
    fn new(dialect: Dialect) -> Self {
        let settings = SchemaSettings::draft2020_12().for_serialize();
        Self {
            dialect,
            generator: settings.into_generator(),
            commands: Vec::new(),
            responses: Vec::new(),
            own: Map::new(),
        }
    }

    fn command(&mut self, word: &str, members: Schema) {
        let mut members = members.to_value();
        fit::optional(&mut members);
        fit::put_first(&mut members, "type", json!({ "const": word }));
        if self.dialect != Dialect::Early {
            let id = json!({ "description": "Echoed in the response; any JSON value." });
            fit::put_first_optional(&mut members, "id", id);
        }
        self.commands.push((word.to_owned(), members));
    }

    fn response(&mut self, word: &str, data: Option<Schema>) {
        let data = data.map(Schema::to_value);
        self.responses.push((word.to_owned(), data));
    }

    fn failure(&mut self) {
        let failure = json!({
            "description": "An invalid line, or a command that failed. `command` is the type of the line, `parse` \
                if it is not JSON, and missing if it has no type.",
            "type": "object",
            "required": ["type", "success", "error"],
            "properties": {
                "id": true,
                "type": { "const": "response" },
                "command": true,
                "success": { "const": false },
                "error": { "type": "string", "minLength": 1 }
            }
        });
        self.own.insert("FailureResponse".to_owned(), failure);
    }

    /// Assembles the document; `printed` and `input` are names of definitions.
    fn finish(mut self, printed: &[&str], input: &[&str]) -> Value {
        let lines = [
            name_of::<EventLine<'_>>(&mut self.generator),
            name_of::<UpdateLine>(&mut self.generator),
            name_of::<EarlyLine<'_>>(&mut self.generator),
        ];
        let dialog = name_of::<Dialog>(&mut self.generator);
        let choice = name_of::<Choice>(&mut self.generator);
        let header = name_of::<SessionHeader>(&mut self.generator);
        let mut types = self.generator.take_definitions(false);
        fit::name_branches(&mut types);

        let mut own = std::mem::take(&mut self.own);
        let commands = own_definitions(&mut own, self.commands, "Command");
        own.insert("command".to_owned(), json!({ "oneOf": commands }));

        let data_is_in_dialect = |data: &Value| {
            fit::target(data).is_none_or(|name| fit::is_in_dialect(&types[name], self.dialect))
        };
        let success = |(word, data): (String, Option<Value>)| {
            let response = success(&word, data.filter(data_is_in_dialect));
            (word, response)
        };
        let responses: Vec<_> = self.responses.into_iter().map(success).collect();
        let mut responses = own_definitions(&mut own, responses, "Response");
        responses.push(fit::reference("FailureResponse"));
        own.insert(
            "response".to_owned(),
            json!({
                "description": "Exactly one for every command. `id` is the one of the command, and missing if it \
                    has none.",
                "oneOf": responses
            }),
        );

        let events: Vec<Value> = lines
            .iter()
            .flat_map(|name| fit::branches(&types[name]))
            .collect();
        own.insert(
            "event".to_owned(),
            json!({ "description": "An event of the session.", "oneOf": events }),
        );
        own.insert("sessionHeader".to_owned(), fit::reference(&header));

        for (name, word, union) in [
            ("extensionUiRequest", "extension_ui_request", &dialog),
            ("extensionUiResponse", "extension_ui_response", &choice),
        ] {
            let branches = fit::branches(&types[union]);
            for branch in branches.iter().filter_map(fit::target) {
                let id = json!({ "type": "string", "minLength": 1 });
                fit::put_first(&mut types[branch], "id", id);
                fit::put_first(&mut types[branch], "type", json!({ "const": word }));
            }
            let description = types[union]["description"].clone();
            own.insert(
                name.to_owned(),
                json!({ "description": description, "oneOf": branches }),
            );
        }

        let references =
            |names: &[&str]| -> Vec<Value> { names.iter().copied().map(fit::reference).collect() };
        own.insert(
            "input".to_owned(),
            json!({ "description": "The lines of a client: one JSON object each.", "oneOf": references(input) }),
        );
        own.extend(types);

        let dialect = self.dialect.name();
        let mut document = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$id": format!("urn:pinion:schema:pi-{dialect}"),
            "title": format!("Lines of the {dialect} pi protocol"),
            "description": format!("The output of `pinion --mode rpc --rpc-dialect {dialect}`: one JSON object per line. \
                `--mode json` writes the header of the session first and no responses. `$defs/input` describes the \
                lines of a client, in which pinion ignores members that are not described."),
            "oneOf": references(printed),
            "$defs": own,
        });
        fit::fit(&mut document, self.dialect);
        document
    }
}

fn name_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> String {
    let reference = generator.subschema_for::<T>().to_value();
    fit::target(&reference).unwrap_or_default().to_owned()
}

/// Moves schemas into the definitions and returns references to them.
fn own_definitions(
    own: &mut Map<String, Value>,
    schemas: Vec<(String, Value)>,
    suffix: &str,
) -> Vec<Value> {
    let mut references = Vec::new();
    for (word, schema) in schemas {
        let name = fit::pascal(&word) + suffix;
        references.push(fit::reference(&name));
        own.insert(name, schema);
    }
    references
}

fn success(word: &str, data: Option<Value>) -> Value {
    let mut response = json!({
        "type": "object",
        "required": ["type", "command", "success"],
        "properties": {
            "id": true,
            "type": { "const": "response" },
            "command": { "const": word },
            "success": { "const": true }
        }
    });
    if let Some(data) = data {
        fit::put_last(&mut response, "data", data);
    }
    response
}
