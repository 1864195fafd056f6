//! `ops.display`: text as a terminal shows it, and the frontmatter of Markdown files.

use rquickjs::prelude::Func;
use rquickjs::{Array, Ctx, Exception, Object, Result};
use serde_json::json;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use super::group;
use crate::script::Host;

pub(crate) fn install<'js>(ctx: &Ctx<'js>, ops: &Object<'js>, _host: &Host) -> Result<()> {
    let display = group(ctx, ops, "display")?;
    display.set("clusters", Func::from(clusters))?;
    display.set("byteLength", Func::from(|text: String| text.len()))?;
    display.set("tail", Func::from(tail))?;
    display.set("frontmatter", Func::from(frontmatter))?;
    Ok(())
}

/// Returns the grapheme clusters and their widths in columns, alternately.
fn clusters<'js>(ctx: Ctx<'js>, text: String) -> Result<Array<'js>> {
    let flat = Array::new(ctx)?;
    for (at, cluster) in text.graphemes(true).enumerate() {
        flat.set(2 * at, cluster)?;
        flat.set(2 * at + 1, columns(cluster))?;
    }
    Ok(flat)
}

/// Returns the last `most` bytes of a text, from a whole character on.
fn tail(text: String, most: usize) -> String {
    let start = text.ceil_char_boundary(text.len().saturating_sub(most));
    text[start..].to_owned()
}

fn columns(cluster: &str) -> usize {
    match cluster.chars().next() {
        Some(first) if first.is_control() => 0,
        // An emoji that is joined from several parts is drawn as one.
        _ if cluster.chars().nth(1).is_some() => cluster.width().min(2),
        _ => cluster.width(),
    }
}

/// Returns `{frontmatter, body}` as JSON.
fn frontmatter(ctx: Ctx<'_>, text: String) -> Result<String> {
    match pinion_config::parse_frontmatter(&text) {
        Ok((frontmatter, body)) => {
            Ok(json!({ "frontmatter": frontmatter, "body": body }).to_string())
        }
        Err(message) => Err(Exception::throw_message(&ctx, &message)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_those_of_a_terminal() {
        for (text, expected) in [
            ("a", 1),
            ("日", 2),
            ("é", 1),
            ("e\u{301}", 1),
            ("👨\u{200d}👩\u{200d}👧", 2),
            ("\u{200b}", 0),
            ("\n", 0),
            ("🇩🇪", 2),
        ] {
            assert_eq!(columns(text), expected, "{text:?}");
        }
    }
}
