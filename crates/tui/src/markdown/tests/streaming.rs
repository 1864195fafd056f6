//! Tests that a text may arrive in any deltas, and that each takes little work.

use proptest::prelude::*;

use super::*;
use crate::text;

/// Meaningful lines, combined at random.
fn any_markdown() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        4 => "[-+*>#`~|=_ 0-9.()\\[\\]!<a-z]{0,14}",
        1 => Just("```rust".to_owned()),
        1 => Just("```".to_owned()),
        1 => Just("| a | b |".to_owned()),
        1 => Just("|---|--:|".to_owned()),
        1 => "- [a-z ]{0,9}|  - [a-z]{1,4}|[0-9]{1,2}[.)] [a-z ]{1,9}|    [a-z]{1,6}|> [a-z*]{1,6}",
        1 => "[a-z \u{1b}\u{202e}\t日é👩\u{301}&#;0-9]{0,14}",
        1 => Just("[a]: http://x.y".to_owned()),
        1 => Just("<!-- c".to_owned()),
        1 => Just("**b** `c` [l](u) ![i](p) ~~s~~ <br> \\* &#27;[31m".to_owned()),
        3 => Just(String::new()),
    ];
    proptest::collection::vec(line, 0..16).prop_map(|lines| lines.join("\n"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn pieces_make_no_difference(
        source in any_markdown(),
        cuts in proptest::collection::vec(0usize..200, 0..12),
        width in 1u16..100,
    ) {
        let mut cuts: Vec<usize> = cuts
            .into_iter()
            .map(|cut| source.floor_char_boundary(cut.min(source.len())))
            .collect();
        cuts.sort_unstable();
        cuts.push(source.len());
        let mut growing = Markdown::new();
        let mut from = 0;
        for cut in cuts {
            growing.push(&source[from..cut]);
            let so_far = growing.lines(width, &theme(), &Highlighter::off()).to_vec();
            let mut whole = Markdown::from_text(&source[..cut]);
            let at_once = whole.lines(width, &theme(), &Highlighter::off());
            prop_assert_eq!(so_far.as_slice(), at_once);
            from = cut;
        }
        prop_assert_eq!(growing.text(), source);
    }

    #[test]
    fn rows_fit_and_are_clean(source in any_markdown(), width in 2u16..200) {
        let mut markdown = Markdown::from_text(&source);
        for line in markdown.lines(width, &theme(), &Highlighter::off()) {
            let row = line.to_string();
            prop_assert!(text::width(&row) <= usize::from(width), "{row:?} in {width}");
            prop_assert_eq!(row.trim_end(), row.as_str());
            prop_assert!(text::is_sanitised(&row) && !row.contains('\n'), "{row:?}");
        }
    }

    #[test]
    fn no_word_is_lost(source in any_markdown(), width in 8u16..120) {
        let shown: String = shown(&source, width).split_whitespace().collect();
        let clean = text::sanitise(&source).into_owned();
        let words = clean.split(|c: char| !c.is_ascii_alphabetic());
        for word in words.filter(|word| word.len() > 3 && *word != "http") {
            prop_assert!(shown.contains(word), "{word:?} of {source:?} in {shown:?}");
        }
    }
}

/// Appends the text in deltas of a few bytes and lays it out after each. Returns the bytes laid
/// out.
fn cost_of_streaming(source: &str) -> u64 {
    cost_in_deltas(source, 60)
}

fn cost_in_deltas(source: &str, bytes: usize) -> u64 {
    let mut markdown = Markdown::new();
    let mut rest = source;
    while !rest.is_empty() {
        let (delta, after) = rest.split_at(rest.floor_char_boundary(bytes).max(1));
        markdown.push(delta);
        markdown.lines(80, &theme(), &Highlighter::off());
        rest = after;
    }
    markdown.work
}

const ANSWER: &str = "## Findings\n\nThe parser reads *every* line once, see `scan`:\n\n\
    - one item with some words in it\n- another one\n  - nested\n\n```rust\nfn main() {\n    run();\n}\n```\n\n\
    1. first\n2. second\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n> a quote\n\n";

#[test]
fn work_grows_linearly_with_the_answer() {
    let short = ANSWER.repeat(250_000 / ANSWER.len());
    let long = short.repeat(4);
    let (short, long) = (cost_of_streaming(&short), cost_of_streaming(&long));
    assert!(long <= short * 4 + short / 10, "{short} and {long}");
}

#[test]
fn a_long_code_is_laid_out_line_by_line() {
    let code = format!(
        "```rust\n{}",
        "    let number = compute(1, 2, 3);\n".repeat(30_000)
    );
    let cost = cost_of_streaming(&code);
    assert!(cost < 20 * code.len() as u64, "{cost}");
}

#[test]
fn a_long_list_is_laid_out_item_by_item() {
    let list = "- an item of a list that goes on\n".repeat(30_000);
    let cost = cost_of_streaming(&list);
    assert!(cost < 40 * list.len() as u64, "{cost}");
}

#[test]
fn an_endless_block_is_laid_out_in_pieces() {
    let line = "word ".repeat(30_000);
    let deltas = line.len() as u64 / 700 + 1;
    let cost = cost_in_deltas(&line, 700);
    assert!(cost < deltas * 2 * scanner::MAX_PIECE as u64, "{cost}");
}

#[test]
fn nothing_is_laid_out_twice_without_need() {
    let mut markdown = Markdown::from_text(&ANSWER.repeat(20));
    markdown.lines(80, &theme(), &Highlighter::off());
    let work = markdown.work;
    markdown.lines(80, &theme(), &Highlighter::off());
    assert_eq!(markdown.work, work);
    markdown.lines(79, &theme(), &Highlighter::off());
    assert_eq!(markdown.work, 2 * work);
}

#[test]
fn colours_come_later_and_move_nothing() {
    let (sender, ready) = std::sync::mpsc::sync_channel(1);
    let highlighter = Highlighter::start(move || {
        // One that waits is enough.
        let _ = sender.try_send(());
    });
    let source = "text\n\n```rust\nfn main() {}\nlet x = 1;\n```\nafter\n\n- item\n\n  ```py\n  def f(): pass\n  ```\n\nend `";
    let mut markdown = Markdown::new();
    for delta in source.split_inclusive(' ') {
        markdown.push(delta);
        markdown.lines(40, &theme(), &highlighter);
    }
    let keyword = theme().keyword;
    let is_coloured = |markdown: &mut Markdown, word: &str| {
        let lines = markdown.lines(40, &theme(), &highlighter);
        let mut spans = lines.iter().flat_map(|line| &line.spans);
        spans.any(|span| span.content.trim() == word && span.style == keyword)
    };
    while !(is_coloured(&mut markdown, "fn")
        && is_coloured(&mut markdown, "let")
        && is_coloured(&mut markdown, "def"))
    {
        ready
            .recv_timeout(std::time::Duration::from_secs(60))
            .unwrap();
    }
    let coloured = text_of(markdown.lines(40, &theme(), &highlighter));
    assert_eq!(coloured, shown(source, 40));
    assert!(markdown.waiting.is_empty());
}
