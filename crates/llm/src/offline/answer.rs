//! Decides the offline model's answer, from nothing but the request.
//!
//! A script in the prompt comes first, then a script file, then results of its own calls, then
//! plain requests. The position in a script is counted in the history, so that it survives a
//! restart.

use std::time::Duration;

use pinion_message::{Block, Message, StopReason, ToolResultMessage};

use super::request::PlainRequest;
use super::script::{DEFAULT_CHUNK, Paced, Script, ScriptedCall, ScriptedTurn, Step};
use super::{PROVIDER, SCENARIO_PREFIX, SCENARIO_VARIABLE};
use crate::Request;

/// Bytes.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// Lines of a tool's output that the answer repeats.
const SHOWN_LINES: usize = 12;

/// Introduces the model and lists the requests it recognises.
const INTRODUCTION: &str = "This is offline/demo, the model built into pinion. It runs without a \
network and follows fixed rules; it does not understand language. It does understand:

- list the files in src
- read Cargo.toml
- run `cargo --version`
- write notes.txt: any text
- edit notes.txt: replace `any` with `some`
- search for TODO in src
- think about anything

For a real model, set an API key (for example ANTHROPIC_API_KEY) and start again.";

/// The answer to a request.
pub(super) fn turn_for(request: &Request) -> ScriptedTurn {
    let scripted = scripted_turn(request).unwrap_or_else(|why| {
        Some(ScriptedTurn {
            steps: vec![Step::Fail(format!("Offline script: {why}"))],
            ..ScriptedTurn::default()
        })
    });
    scripted.unwrap_or_else(|| ScriptedTurn {
        steps: plain_steps(request),
        ..ScriptedTurn::default()
    })
}

/// The turn a script has for this request.
fn scripted_turn(request: &Request) -> Result<Option<ScriptedTurn>, String> {
    let inline = inline_script(request);
    if let Some((script, answers)) = inline {
        return Ok(Script::parse(script.trim_start())?
            .turns
            .into_iter()
            .nth(answers));
    }
    let file = match request.model.id.strip_prefix(SCENARIO_PREFIX) {
        Some(file) => file.to_owned(),
        None => match std::env::var(SCENARIO_VARIABLE) {
            Ok(file) if !file.is_empty() => file,
            _ => return Ok(None),
        },
    };
    let text = pinion_files::read_text(file.as_ref(), MAX_FILE_BYTES)
        .map_err(|error| format!("{file}: {error}"))?;
    let script = Script::parse(&text).map_err(|why| format!("{file}: {why}"))?;
    let answers = request
        .messages
        .iter()
        .filter(|message| is_answer_of(message, &request.model.id));
    let turn = script.turns.into_iter().nth(answers.count());
    Ok(Some(turn.unwrap_or_else(|| {
        text_turn("The scenario has no more turns.")
    })))
}

/// The script in force and the number of answers it has given: the script of the last user message,
/// or of an earlier one if every later message was steered in between tool results and the next
/// turn.
fn inline_script(request: &Request) -> Option<(String, usize)> {
    let messages = &request.messages;
    let mut answers = 0;
    let mut later_ones_were_steered = true;
    for (index, message) in messages.iter().enumerate().rev() {
        match &**message {
            Message::Assistant(_) if is_answer(message) => answers += 1,
            Message::User(user) => {
                let text = user.content.joined_text("\n");
                if let Some(script) = script_in(&text) {
                    return later_ones_were_steered.then(|| (script.to_owned(), answers));
                }
                later_ones_were_steered &= was_steered(messages, index);
                if !later_ones_were_steered {
                    return None;
                }
            }
            _ => {}
        }
    }
    None
}

/// Reports whether the user message at `index` came between tool results and the next turn.
fn was_steered(messages: &[std::sync::Arc<Message>], index: usize) -> bool {
    let before = messages[..index].iter().rev();
    let earlier = before
        .map(|message| &**message)
        .find(|message| !matches!(message, Message::User(_)));
    matches!(earlier, Some(Message::ToolResult(_)))
}

/// The text that begins with a script: after `offline:` at the start of a line, or in a fence.
fn script_in(text: &str) -> Option<&str> {
    // A conversation quoted for a summary is not an instruction.
    if is_conversation(text) {
        return None;
    }
    ["offline:", "```offline"].iter().find_map(|mark| {
        let starts = text.match_indices(mark).map(|(start, _)| start);
        let mut starts = starts.filter(|&start| start == 0 || text[..start].ends_with('\n'));
        starts.next().map(|start| &text[start + mark.len()..])
    })
}

fn is_conversation(text: &str) -> bool {
    text.trim_start().starts_with("<conversation>")
}

/// Reports whether a message is an answer. Failed answers do not count: their turn is requested
/// again.
fn is_answer(message: &Message) -> bool {
    let reason = message.as_assistant().map(|answer| answer.stop_reason);
    reason.is_some_and(|reason| !matches!(reason, StopReason::Error | StopReason::Aborted))
}

fn is_answer_of(message: &Message, id: &str) -> bool {
    let ours = message
        .as_assistant()
        .is_some_and(|a| a.provider == PROVIDER && a.model == id);
    ours && is_answer(message)
}

/// The answer when there is no script.
fn plain_steps(request: &Request) -> Vec<Step> {
    let results: Vec<&ToolResultMessage> = results(request);
    if !results.is_empty() {
        return text_turn(report(&results)).steps;
    }
    let last_user = request
        .messages
        .iter()
        .rev()
        .find_map(|message| match &**message {
            Message::User(user) => Some(user),
            _ => None,
        });
    let text = last_user
        .map(|user| user.content.joined_text("\n"))
        .unwrap_or_default();
    if is_conversation(&text) {
        return text_turn(summary(&text)).steps;
    }
    match PlainRequest::parse(&text) {
        None => text_turn(INTRODUCTION).steps,
        Some(PlainRequest::Think { about }) => vec![
            thought(format!(
                "The request is to think about {about}. A fixed rule turns it into this text and the \
                 answer below; nothing is reasoned about."
            )),
            text_step(format!(
                "I am offline/demo, so I have no thoughts of my own about {about}. You have just seen \
                 what a thinking block looks like."
            )),
        ],
        Some(asked) => match asked.call(&request.tools) {
            Ok(call) => {
                let what = ScriptedCall {
                    id: None,
                    name: call.tool.to_owned(),
                    text: call.arguments.to_string(),
                };
                vec![Step::Tool(Paced {
                    what,
                    chunk: DEFAULT_CHUNK,
                    pace: Duration::ZERO,
                })]
            }
            Err(tool) => {
                let text = format!(
                    "offline/demo needs the tool \"{tool}\" for that, and it is not enabled."
                );
                text_turn(text).steps
            }
        },
    }
}

/// The tool results at the end of the history, in order.
fn results(request: &Request) -> Vec<&ToolResultMessage> {
    let last = request.messages.iter().rev();
    let results = last.map_while(|message| match &**message {
        Message::ToolResult(result) => Some(result),
        _ => None,
    });
    let mut results: Vec<_> = results.collect();
    results.reverse();
    results
}

/// A summary of the tool results.
fn report(results: &[&ToolResultMessage]) -> String {
    let mut report = String::from("offline/demo here, pinion's built-in model.");
    for result in results {
        let texts: Vec<&str> = result.content.iter().filter_map(Block::as_text).collect();
        let output = texts.join("\n");
        let output = output.trim_end();
        let lines = output.lines().count();
        let verb = if result.is_error {
            "failed"
        } else {
            "returned"
        };
        let amount = match lines {
            0 => "nothing".to_owned(),
            1 => "one line".to_owned(),
            _ => format!("{lines} lines"),
        };
        report.push_str(&format!(
            " The tool {} {verb} with {amount}",
            result.tool_name
        ));
        if lines == 0 {
            report.push_str(".\n");
            continue;
        }
        report.push_str(":\n\n```\n");
        for line in output.lines().take(SHOWN_LINES) {
            report.extend(line.chars().take(200));
            report.push('\n');
        }
        if lines > SHOWN_LINES {
            report.push_str(&format!("… {} more lines\n", lines - SHOWN_LINES));
        }
        report.push_str("```\n");
    }
    report.truncate(report.trim_end().len());
    report
}

/// A stand-in for a summary: the user's requests, in order.
fn summary(conversation: &str) -> String {
    let asked = conversation
        .lines()
        .filter_map(|line| line.strip_prefix("[User]: "));
    let asked: Vec<String> = asked
        .map(|line| format!("- {}", line.chars().take(200).collect::<String>()))
        .collect();
    let asked = if asked.is_empty() {
        "- (nothing)".to_owned()
    } else {
        asked.join("\n")
    };
    format!(
        "## Goal\nWritten by offline/demo, which only repeats what the user asked:\n{asked}\n\n\
         ## Progress\n{} lines of conversation were summarised.",
        conversation.lines().count()
    )
}

fn text_turn(text: impl Into<String>) -> ScriptedTurn {
    ScriptedTurn {
        steps: vec![text_step(text.into())],
        ..ScriptedTurn::default()
    }
}

fn text_step(what: String) -> Step {
    Step::Text(Paced {
        what,
        chunk: DEFAULT_CHUNK,
        pace: Duration::ZERO,
    })
}

fn thought(what: String) -> Step {
    Step::Think(Paced {
        what,
        chunk: DEFAULT_CHUNK,
        pace: Duration::ZERO,
    })
}
