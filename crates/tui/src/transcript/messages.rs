//! Messages of the user and of extensions.

use std::borrow::Cow;

use pinion_message::{Block, Content, Message};
use pinion_text::amount;
use ratatui::text::Line;
use serde_json::Value;

use super::preview::{self, decoded_size, first_rows};
use super::{Fold, Look};
use crate::markdown::Markdown;

/// Rows shown of a long message while it is folded.
const FOLDED_ROWS: usize = 20;

/// A message of the user.
pub(super) fn user(message: &Message, width: u16, look: &Look<'_>) -> Vec<Line<'static>> {
    let Message::User(user) = message else {
        return Vec::new();
    };
    let style = look.theme.user;
    let text = text_of(&user.content);
    let text = text.trim();
    let text = match look.tools {
        Fold::Folded => without_inclusions(text),
        Fold::Unfolded => Cow::Borrowed(text),
    };
    let mut lines = preview::wrapped(&format!("> {}", text.trim()), width, style);
    if look.tools == Fold::Folded {
        lines = first_rows(lines, FOLDED_ROWS, width, look.theme);
    }
    let named = |words: String| preview::row(&words, width, look.theme.dim);
    lines.extend(images(&user.content).map(named));
    lines.extend(attachments(user.attachments.as_ref()).map(named));
    lines
}

/// Reports whether a message of an extension is meant for people.
pub(super) fn is_displayed(message: &Message) -> bool {
    matches!(message, Message::Custom(custom) if custom.display)
}

/// A message of an extension.
pub(super) fn custom(message: &Message, width: u16, look: &Look<'_>) -> Vec<Line<'static>> {
    let Message::Custom(custom) = message else {
        return Vec::new();
    };
    let label = format!("[{}]", custom.custom_type);
    let mut lines = vec![preview::row(&label, width, look.theme.accent)];
    let text = text_of(&custom.content);
    let mut markdown = Markdown::from_text(text.trim());
    let body = markdown.lines(width, look.theme, look.highlighter).to_vec();
    lines.extend(match look.tools {
        Fold::Folded => first_rows(body, FOLDED_ROWS, width, look.theme),
        Fold::Unfolded => body,
    });
    lines.extend(images(&custom.content).map(|words| preview::row(&words, width, look.theme.dim)));
    lines
}

/// Describes an image in words.
pub(crate) fn image(block: &Block) -> Option<String> {
    let Block::Image { data, mime_type } = block else {
        return None;
    };
    Some(format!(
        "[image {mime_type}, {}]",
        amount::size(decoded_size(data))
    ))
}

fn text_of(content: &Content) -> Cow<'_, str> {
    match content {
        Content::Text(text) => Cow::Borrowed(text),
        blocks => Cow::Owned(blocks.joined_text("\n")),
    }
}

fn images(content: &Content) -> impl Iterator<Item = String> + '_ {
    let blocks = match content {
        Content::Text(_) => &[],
        Content::Blocks(blocks) => blocks.as_slice(),
    };
    blocks.iter().filter_map(image)
}

fn attachments(value: Option<&Value>) -> impl Iterator<Item = String> + '_ {
    let list = value.and_then(Value::as_array).into_iter().flatten();
    list.map(|attachment| {
        let member = |name: &str| attachment.get(name).and_then(Value::as_str);
        let kind = member("type").unwrap_or("attachment");
        let name = member("fileName").unwrap_or("unnamed");
        let mut words = format!("[{kind} {name}");
        if let Some(mime_type) = member("mimeType") {
            words.push_str(&format!(", {mime_type}"));
        }
        if let Some(content) = member("content") {
            words.push_str(&format!(", {}", amount::size(decoded_size(content))));
        }
        words.push(']');
        words
    })
}

/// Replaces files and skills that were included for the model by their names.
fn without_inclusions(text: &str) -> Cow<'_, str> {
    if !text.contains("<file name=\"") && !text.contains("<skill name=\"") {
        return Cow::Borrowed(text);
    }
    let mut kept = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        match inclusion(rest) {
            Some((words, after)) => {
                kept.push_str(&words);
                kept.push('\n');
                rest = after.strip_prefix('\n').unwrap_or(after);
            }
            None => {
                let end = rest.find('\n').map_or(rest.len(), |at| at + 1);
                kept.push_str(&rest[..end]);
                rest = &rest[end..];
            }
        }
    }
    Cow::Owned(kept)
}

/// Parses an included file or skill at the beginning of `text`: its description, and the text after
/// it.
fn inclusion(text: &str) -> Option<(String, &str)> {
    let (kind, closing) = if text.starts_with("<file name=\"") {
        ("file", "</file>")
    } else if text.starts_with("<skill name=\"") {
        ("skill", "</skill>")
    } else {
        return None;
    };
    let after_quote = text.split_once('"')?.1;
    let (name, _) = after_quote.split_once('"')?;
    let (_, inside) = after_quote.split_once('>')?;
    let (body, after) = inside.split_once(closing)?;
    let lines = body.trim_matches('\n').lines().count();
    Some((
        format!("[{kind} {name}, {}]", amount::count(lines, "line")),
        after,
    ))
}
