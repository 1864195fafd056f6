//! Small documents that expand to large ones are rejected before they use the memory, and errors
//! are explained.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use pinion_yaml::parse;

/// Builds `levels` lists of `width` aliases, each of the list before; the first holds `text`.
fn bomb(text: &str, width: usize, levels: usize) -> String {
    let mut document = format!("l0: &l0 \"{text}\"\n");
    for level in 1..=levels {
        let before = format!("*l{}", level - 1);
        let aliases = vec![before; width].join(", ");
        document.push_str(&format!("l{level}: &l{level} [{aliases}]\n"));
    }
    document
}

fn refusal(document: &str) -> String {
    match parse(document) {
        Ok(_) => panic!("{} bytes were accepted", document.len()),
        Err(problem) => problem.message,
    }
}

#[test]
fn aliases_of_aliases_are_refused() {
    for (width, levels) in [(9, 9), (90, 4), (2, 40)] {
        let said = refusal(&bomb("lol", width, levels));
        assert!(said.contains("more than 100000 values"), "{said}");
    }
}

#[test]
fn a_long_text_with_many_aliases_is_refused() {
    let text = "x".repeat(1_000_000);
    for (width, levels) in [(9, 5), (90, 1)] {
        let said = refusal(&bomb(&text, width, levels));
        assert!(said.contains("more than 64 MB of text"), "{said}");
    }
}

#[test]
fn deep_documents_are_refused() {
    let indented: String = (0..500)
        .map(|level| format!("{}a:\n", " ".repeat(level)))
        .collect();
    for document in [
        "[".repeat(100_000),
        "{a: ".repeat(100_000),
        "- ".repeat(100_000),
        "? ".repeat(100_000),
        format!("{}1", "- ".repeat(33)),
        indented,
    ] {
        let said = refusal(&document);
        assert!(said.contains("more than 32 levels"), "{said}");
    }
    assert!(parse(&format!("{}1", "- ".repeat(30))).is_ok());
}

#[test]
fn aliases_that_stay_small_are_fine() {
    let node = parse("a: &a {x: 1}\nb: [*a, *a]\nc: {<<: *a, y: 2}\n").unwrap();
    assert_eq!(node.to_value()["b"][1]["x"], 1);
}

#[test]
fn mistakes_are_named_in_words() {
    for (document, words) in [
        ("a: b: c\n", "put text that contains a colon in quotes"),
        ("a: - b\n", "begin it on a line of its own"),
        ("a: [1, 2\n", "this is not valid YAML"),
        ("a: {b: 1\n", "this is not valid YAML"),
        ("a: 1\na: 2\n", "\"a\" appears twice; remove one of them"),
        ("a: *b\n", "an alias names an anchor that does not exist"),
        ("a: 1\n---\nb: 2\n", "more than one document"),
        ("a:\n\tb: 1\n", "use spaces"),
        (
            "? [a]\n: 1\n",
            "text is expected here, not a list or a mapping",
        ),
        ("a: 'b\n", "this is not valid YAML"),
        ("a: @b\n", "must be in quotes"),
        ("a: 1\n  b: 2\n c: 3\n", "this is not valid YAML"),
    ] {
        let said = refusal(document);
        assert!(said.contains(words), "{document}: {said}");
        for word in [
            "scalar",
            "budget",
            "breached",
            "token",
            "Error",
            "serde",
            "<",
            " at line ",
        ] {
            assert!(!said.contains(word), "{document}: {said}");
        }
    }
}
