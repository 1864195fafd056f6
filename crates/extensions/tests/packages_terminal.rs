//! Components and keys of the terminal library, without a terminal.

#![allow(clippy::unwrap_used)]

mod support;

use serde_json::{Value, json};
use support::Bench;

async fn run(body: &str) -> Value {
    let bench = Bench::new().await;
    bench.write(
        "a.ts",
        &format!("import * as tui from '@mariozechner/pi-tui'; import * as pi from '@mariozechner/pi-coding-agent'; export default async () => {{ {body} }};"),
    );
    bench.run("a.ts").await.unwrap()
}

#[tokio::test]
async fn widths_are_those_of_a_terminal() {
    let found = run(r#"
        const red = (text: string) => `\x1b[31m${text}\x1b[0m`;
        return [
          ["abc", "日本", "👨‍👩‍👧", "e\u0301", red("ab"), "a\tb", "\x1b]8;;http://x\x07link\x1b]8;;\x07"].map(tui.visibleWidth),
          tui.truncateToWidth("hello world", 8, "…"), tui.truncateToWidth("日本語テスト", 5), tui.truncateToWidth("hi", 5, "...", true),
          tui.wrapTextWithAnsi("the quick brown fox", 10), tui.wrapTextWithAnsi(red("one two"), 4), tui.wrapTextWithAnsi("日本語", 5),
        ];"#).await;
    assert_eq!(
        found,
        json!([
            [3, 4, 2, 1, 2, 5, 4],
            "hello w\u{1b}[0m…\u{1b}[0m",
            "日\u{1b}[0m...\u{1b}[0m",
            "hi   ",
            ["the quick", "brown fox"],
            ["\u{1b}[31mone", "\u{1b}[31mtwo\u{1b}[0m"],
            ["日本", "語"],
        ])
    );
}

#[tokio::test]
async fn keys_have_names_and_names_have_keys() {
    let found = run(r#"
        return [
          tui.Key.ctrlAlt("p"), tui.Key.escape, tui.Key.pageUp,
          [["\r", "enter"], ["\x03", "ctrl+c"], ["A", "shift+a"], ["\x1b[1;5A", "ctrl+up"], ["\x1bb", "alt+left"], ["\x1b[13;2u", "shift+enter"], ["a", "b"]].map(([data, key]) => tui.matchesKey(data, key as any)),
          ["\x1b[Z", "\x1b[15~", "\x1b[97;5u", " "].map(tui.parseKey), tui.isKeyRelease("\x1b[97;1:3u"),
          tui.fuzzyFilter(["src/main.rs", "readme.md", "Makefile"], "m", (item) => item), tui.fuzzyMatch("x", "abc").matches,
        ];"#).await;
    assert_eq!(
        found,
        json!([
            "ctrl+alt+p",
            "escape",
            "pageUp",
            [true, true, true, true, true, true, false],
            ["shift+tab", "f5", "ctrl+a", "space"],
            true,
            ["Makefile", "src/main.rs", "readme.md"],
            false,
        ])
    );
}

#[tokio::test]
async fn components_turn_themselves_into_lines() {
    let found = run(r##"
        const plain = (text: string) => text;
        const box = new tui.Box(1, 0, (text) => `[${text}]`); box.addChild(new tui.Text("hi", 0, 0));
        const list = new tui.SelectList([{ value: "a", label: "Alpha" }, { value: "b", label: "Beta" }], 5, { selectedPrefix: plain, selectedText: plain, description: plain, scrollInfo: plain, noMatch: plain });
        let chosen; list.onSelect = (item) => { chosen = item.value }; list.handleInput("\x1b[B"); list.handleInput("\r");
        const input = new tui.Input(); for (const key of ["a", "b", "\x7f", "c"]) input.handleInput(key);
        class Mine extends pi.CustomEditor { render(width: number) { return [...super.render(width), "mine"] } }
        const editor = new Mine({ requestRender() {} } as any, { borderColor: plain } as any, undefined as any); let sent; editor.onSubmit = (text) => { sent = text };
        for (const key of ["h", "i", "\r"]) editor.handleInput(key);
        return [
          new tui.Text("hello world", 1, 0).render(8), box.render(6), list.render(20), chosen, input.getValue(), sent, editor.render(4).at(-1),
          new tui.Markdown("# Title\n\n- **one**\n- two", 0, 0, {} as any).render(10).map((line) => line.trimEnd()), new pi.DynamicBorder().render(3), new tui.Spacer(2).render(1).length,
          new pi.ToolExecutionComponent().render(10),
        ];"##).await;
    assert_eq!(
        found,
        json!([
            [" hello  ", " world  "],
            ["[ hi   ]"],
            ["  Alpha", "→ Beta"],
            "b",
            "ac",
            "hi",
            "mine",
            ["Title", "", "- one", "- two"],
            ["───"],
            2,
            [],
        ])
    );
}

#[tokio::test]
async fn a_loader_has_a_signal_that_fires_on_cancel() {
    let found = run(r#"
        const loader = new pi.BorderedLoader({ requestRender() {} } as any, undefined as any, "Working");
        const before = loader.signal.aborted; let told = false; loader.onAbort = () => { told = true };
        loader.handleInput("\x1b");
        return [before, loader.signal.aborted, told, loader.render(12)[0]];"#).await;
    assert_eq!(found, json!([false, true, true, "────────────"]));
}
