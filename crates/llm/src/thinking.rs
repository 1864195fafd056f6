//! Maps thinking levels to each API's values, and computes the output cap that belongs to them.
//! `Model::clamp_thinking` decides which levels a model has.

use pinion_message::{Block, Content, Message, Model, ThinkingLevel};

use crate::request::{Request, RequestOptions};

/// The output cap of requests that set none.
const DEFAULT_MAX_TOKENS: u64 = 32_000;
/// Tokens of the context window that stay free.
const CONTEXT_RESERVE: u64 = 4096;
/// The estimate for an image.
const IMAGE_TOKENS: u64 = 1200;
/// Tokens reserved for the answer when the thinking budget would take all of the cap.
const ANSWER_RESERVE: u64 = 1024;

/// A model's mapping of a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mapped<'a> {
    /// Not mapped: the API's own value.
    Default,
    Unsupported,
    /// The model's own value.
    Word(&'a str),
}

pub(crate) fn mapped(model: &Model, level: ThinkingLevel) -> Mapped<'_> {
    match model
        .thinking_level_map
        .as_ref()
        .and_then(|map| map.get(&level))
    {
        None => Mapped::Default,
        Some(None) => Mapped::Unsupported,
        Some(Some(word)) => Mapped::Word(word),
    }
}

/// The level to ask for: clamped to what the model supports; `None` is off.
pub(crate) fn clamped(request: &Request) -> Option<ThinkingLevel> {
    let asked = request
        .options
        .reasoning
        .filter(|&level| level != ThinkingLevel::Off)?;
    Some(request.model.clamp_thinking(asked)).filter(|&level| level != ThinkingLevel::Off)
}

/// The value for `level`: the model's own, or the level's name.
pub(crate) fn effort(model: &Model, level: ThinkingLevel) -> &str {
    match mapped(model, level) {
        Mapped::Word(word) => word,
        _ => level.as_str(),
    }
}

/// The output cap: the requested one, or the smaller of the model's and the default; `None` if
/// neither is known.
pub(crate) fn max_tokens(request: &Request) -> Option<u64> {
    let default = request.model.max_tokens.min(DEFAULT_MAX_TOKENS);
    let sampling = request.options.sampling.as_deref();
    let uncapped = sampling.is_some_and(|sampling| sampling.uncapped);
    request
        .options
        .max_tokens
        .or(Some(default).filter(|_| !uncapped))
        .filter(|&tokens| tokens > 0)
}

/// The output cap: the requested one, or the model's, reduced to what its context window leaves; `None` if neither is
/// known.
pub(crate) fn fitting_max_tokens(request: &Request) -> Option<u64> {
    let model = &request.model;
    if request.options.max_tokens.is_some() || model.max_tokens == 0 || model.context_window == 0 {
        return request.options.max_tokens.filter(|&tokens| tokens > 0);
    }
    let used = estimated_prompt_tokens(request).saturating_add(CONTEXT_RESERVE);
    let left = model.context_window.saturating_sub(used).max(1);
    Some(model.max_tokens.min(left))
}

/// Estimates the tokens of the prompt from its characters, two for seven.
fn estimated_prompt_tokens(request: &Request) -> u64 {
    let of_text = |text: &str| (text.chars().count() as u64 * 2).div_ceil(7);
    let of_blocks = |blocks: &[Block]| -> u64 {
        let of_block = |block: &Block| match block {
            Block::Text(block) => of_text(&block.text),
            Block::Thinking(block) => of_text(&block.thinking),
            Block::ToolCall(call) => of_text(&call.name) + of_text(&call.arguments.to_string()),
            Block::Image { .. } => IMAGE_TOKENS,
        };
        blocks.iter().map(of_block).sum()
    };
    let messages = request.messages.iter().map(|message| match &**message {
        Message::User(user) => match &user.content {
            Content::Text(text) => of_text(text),
            Content::Blocks(blocks) => of_blocks(blocks),
        },
        Message::Assistant(answer) => of_blocks(&answer.content),
        Message::ToolResult(result) => of_blocks(&result.content),
        _ => 0,
    });
    let prompt = request.system_prompt.as_deref().map_or(0, of_text);
    let tools = match request.tools.len() {
        0 => 0,
        _ => serde_json::to_string(&request.tools[..]).map_or(0, |tools| of_text(&tools)),
    };
    prompt + tools + messages.sum::<u64>()
}

/// Tokens to think with at `level`, as the user set them or by default.
pub(crate) fn budget(level: ThinkingLevel, options: &RequestOptions) -> u64 {
    // Above `high` there is no budget of its own.
    let level = level.min(ThinkingLevel::High);
    options
        .thinking_budgets
        .get(&level)
        .copied()
        .unwrap_or(match level {
            ThinkingLevel::Off => 0,
            ThinkingLevel::Minimal => 1024,
            ThinkingLevel::Low => 2048,
            ThinkingLevel::Medium => 8192,
            _ => 16_384,
        })
}

/// The cap enlarged by the budget, up to the model's maximum, and the budget that then fits.
pub(crate) fn cap_and_budget(base: u64, model_max: u64, budget: u64) -> (u64, u64) {
    let cap = (base + budget).min(model_max);
    let budget = if cap <= budget {
        cap.saturating_sub(ANSWER_RESERVE)
    } else {
        budget
    };
    (cap, budget)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn budgets_match_the_table() {
        for line in include_str!("../tests/vectors/tables/thinking-budget.jsonl").lines() {
            let row: Value = serde_json::from_str(line).unwrap();
            let mut options = RequestOptions::default();
            for (level, tokens) in row
                .get("customBudgets")
                .and_then(Value::as_object)
                .into_iter()
                .flatten()
            {
                options
                    .thinking_budgets
                    .insert(level.parse().unwrap(), tokens.as_u64().unwrap());
            }
            let number = |member: &str| row[member].as_u64().unwrap();
            let level = row["level"].as_str().unwrap().parse().unwrap();
            let (base, model) = (number("baseMaxTokens"), number("modelMaxTokens"));
            let (cap, budget) = cap_and_budget(base, model, budget(level, &options));
            assert_eq!(row["out"]["maxTokens"].as_u64(), Some(cap), "{row}");
            assert_eq!(row["out"]["thinkingBudget"].as_u64(), Some(budget), "{row}");
        }
    }
}
