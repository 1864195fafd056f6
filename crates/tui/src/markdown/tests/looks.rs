//! Tests of the layout of Markdown.

use ratatui::style::Modifier;

use super::*;

const DOCUMENT: &str = include_str!("document.md");

fn at_width(width: u16) -> String {
    shown(DOCUMENT, width)
}

#[test]
fn at_forty() {
    insta::assert_snapshot!(at_width(40));
}

#[test]
fn at_eighty() {
    insta::assert_snapshot!(at_width(80));
}

#[test]
fn at_a_hundred_and_twenty() {
    insta::assert_snapshot!(at_width(120));
}

#[test]
fn code_is_copied_as_it_was_written() {
    let codes = code_blocks(
        "a\n\n```rust\nfn x() {\n\ty();\n}\n```\n\n- b\n\n  ~~~\n  c\n  ~~~\n\n    d\n",
    );
    assert_eq!(codes, ["fn x() {\n\ty();\n}\n", "c\n"]);
}

/// The style of the first span with this text.
fn style_of(source: &str, word: &str, theme: &Theme) -> ratatui::style::Style {
    let mut markdown = Markdown::from_text(source);
    let lines = markdown.lines(80, theme, &Highlighter::off());
    let mut spans = lines.iter().flat_map(|line| &line.spans);
    let found = spans.find(|span| span.content == word);
    found.unwrap_or_else(|| panic!("{word} in {lines:?}")).style
}

#[test]
fn words_have_their_styles() {
    let theme = theme();
    for (source, word, style) in [
        ("plain", "plain", theme.text),
        ("an *emphasis*", "emphasis", theme.emphasis),
        ("a **strong** word", "strong", theme.strong),
        (
            "***both***",
            "both",
            theme.emphasis.add_modifier(Modifier::BOLD),
        ),
        (
            "~~gone~~",
            "gone",
            theme.text.add_modifier(Modifier::CROSSED_OUT),
        ),
        ("a `code`", "code", theme.code),
        ("[a link](http://x)", "a link", theme.link),
        ("[a link](http://x)", " (http://x)", theme.dim),
        (
            "# One",
            "One",
            theme.heading.add_modifier(Modifier::UNDERLINED),
        ),
        ("## Two", "Two", theme.heading),
        ("### Three", "Three", theme.strong),
        ("> quoted", "quoted", theme.quote),
        ("> quoted", "> ", theme.dim),
        ("- item", "- ", theme.accent),
        ("- [x] done", "[x] ", theme.success),
        ("---", "─".repeat(80).as_str(), theme.border),
        ("```rust\nfn\n```", "rust", theme.dim),
        ("```\ndiagram\n```", "diagram", theme.code),
    ] {
        assert_eq!(style_of(source, word, &theme), style, "{source}");
    }
}

#[test]
fn without_colours_code_has_its_marks() {
    let plain = Theme::new(Background::Dark, Colours::None);
    assert_eq!(style_of("a `b` c", "a `b` c", &plain), plain.text);
}

#[test]
fn what_is_not_finished_looks_sensible() {
    for (source, expected) in [
        ("Code:\n\n```ru", "Code:\n\nru"),
        ("```rust\nfn main() {", "rust\nfn main() {"),
        ("```rust\nfn main() {}\n``", "rust\nfn main() {}"),
        ("```rust\nfn main() {}\n```", "rust\nfn main() {}"),
        ("Here:\n-", "Here:\n-"),
        ("Here:\n- one\n-", "Here:\n- one\n-"),
        ("some **bold", "some **bold"),
        ("a [link](http://ex", "a [link](http://ex"),
        ("| a | b |", "| a | b |"),
        ("| a | b |\n|---|---|", "a  b\n─  ─"),
        ("| a | b |\n|---|---|\n| 1", "a  b\n─  ─\n1"),
        ("- item\n  ```sh\n  ls", "- item\n  sh\n  ls"),
        ("", ""),
        ("\n\n", ""),
    ] {
        assert_eq!(shown(source, 40), expected, "{source:?}");
    }
}

#[test]
fn space_is_as_written() {
    for (source, expected) in [
        ("a\nb", "a\nb"),
        ("a\n\n\n\nb", "a\n\nb"),
        ("a\n- b\n- c\n\nd", "a\n- b\n- c\n\nd"),
        ("- a\n\n- b\n- c", "- a\n\n- b\n- c"),
        ("a\n# b\nc", "a\n\nb\nc"),
        ("a\n```\nb\n```\nc", "a\n\nb\n\nc"),
        (
            "- a\n\n  b\n  - c\n\n    d\n- e",
            "- a\n\n  b\n  - c\n\n    d\n- e",
        ),
        ("> a\n>\n> b\n\n> c", "> a\n>\n> b\n\n> c"),
        ("a  \nb\\\nc<br>d", "a\nb\nc\nd"),
        ("3. a\n3. b\n\n5. c", "3. a\n4. b\n\n5. c"),
        ("-\n- a", "-\n- a"),
    ] {
        assert_eq!(shown(source, 40), expected, "{source:?}");
    }
}

#[test]
fn links_and_images_are_shown_as_text() {
    for (source, expected) in [
        ("<https://x.y>", "https://x.y"),
        ("[https://x.y](https://x.y)", "https://x.y"),
        ("[docs](https://x.y)", "docs (https://x.y)"),
        ("<me@x.y>", "me@x.y"),
        ("![a *cat*](cat.png)", "[image: a cat] (cat.png)"),
        ("![](data:image/png;base64,AAAA)", "[image]"),
        ("[![b](i.png)](u)", "[image: b] (i.png) (u)"),
        (
            "see [docs][1]\n\n[1]: https://x.y",
            "see [docs][1]\n\n[1]: https://x.y",
        ),
        ("[a]\n[a]: u\n", "[a]\n[a]: u"),
        (
            "[a]: u\n[b *c*][a] ![p][a] [a][]",
            "[b c][a] [image: p][a] [a][]\n[a]: u",
        ),
        ("![a ![b](c) d](e)", "[image: a b d] (e)"),
        ("a <b>bold</b>", "a <b>bold</b>"),
        ("&lt;ok&gt; &#27;[31m &#x202e;", "<ok> [31m \u{fffd}"),
    ] {
        assert_eq!(shown(source, 60), expected, "{source:?}");
    }
}

#[test]
fn a_table_too_wide_for_columns_becomes_records() {
    let source =
        "| name | size | note |\n|---|---|---|\n| alpha | 10 | first one |\n| beta | 20 | |\n";
    assert_eq!(
        shown(source, 12),
        "name: alpha\nsize: 10\nnote: first\none\n\nname: beta\nsize: 20\nnote:"
    );
}
