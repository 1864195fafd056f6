//! The chat on a terminal: its first frame, a key while an answer streams, and a long session.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Bench, one_turn, open, thousands};
use crate::Fallible;
use crate::home::Home;
use crate::plain;
use crate::samples::{Samples, size, time};
use crate::screen::Screen;
use crate::table::Row;
use crate::terminal::Terminal;

/// Seconds within which a frame must follow a key: one frame at 60 Hz.
const PROMPT_FRAME: f64 = 0.016;
const KEYS: usize = 200;
/// Letters that are typed, then deleted.
const LETTERS: usize = 50;
const PAGES: usize = 50;
const PAGE_UP: &str = "\x1b[5~";
const BACKSPACE: &str = "\x7f";

pub fn run(bench: &mut Bench) -> Fallible<()> {
    first_frame(bench)?;
    keys_while_streaming(bench)?;
    long_session(bench)
}

fn start(bench: &Bench, home: &Home, arguments: &[&str]) -> Fallible<Terminal> {
    let mut command = Command::new(bench.agents.pinion.program()?);
    command.args(arguments);
    home.apply_to(&mut command);
    Terminal::start(&mut command)
}

/// Reports whether the input row is drawn.
fn is_drawn(screen: &Screen) -> bool {
    screen.editor().is_some_and(|(_, text)| text.is_empty())
}

/// Reports whether the status line names the model, which it does once the session exists.
fn is_ready(screen: &Screen) -> bool {
    let mut lines = screen.lines();
    is_drawn(screen)
        && lines
            .next_back()
            .is_some_and(|line| line.contains("mock-1"))
}

fn first_frame(bench: &mut Bench) -> Fallible<()> {
    let [mut drawn, mut ready, mut plain] = [const { Samples::new() }; 3];
    for _ in 0..bench.rounds.ours * 4 {
        let home = bench.home()?;
        let mut terminal = start(bench, &home, &[])?;
        let started = terminal.started;
        drawn.add_time(terminal.wait_for("the first frame", is_drawn)? - started);
        ready.add_time(terminal.wait_for("the model's name", is_ready)? - started);
        let mut terminal = Terminal::start(&mut plain::command(plain::PAINT, "")?)?;
        terminal.press("\n")?;
        let seen = terminal.wait_for("a frame", is_drawn)?;
        plain.add_time(seen - terminal.started);
    }
    bench.table.add(Row {
        what: "chat: spawn → first frame on a terminal".into(),
        pinion: time(drawn.median()),
        ratio: format!(
            "an empty program {}; the session is there after {}",
            time(plain.median()),
            time(ready.median())
        ),
        target: "< 30 ms".into(),
        met: Some(drawn.median() < 0.030),
        ..Row::default()
    });
    Ok(())
}

/// The measurements while keys were pressed.
#[derive(Debug, Default)]
struct Typed {
    delays: Samples,
    deltas_per_second: Samples,
    /// Processor time per second.
    work: Samples,
}

fn keys_while_streaming(bench: &mut Bench) -> Fallible<()> {
    bench.model.play(&one_turn(&json!({"text": answer()})))?;
    let mut typed = Typed::default();
    for _ in 0..bench.rounds.ours {
        press_keys(bench, &mut typed)?;
    }
    let (median, late) = (typed.delays.median(), typed.delays.at(0.99));
    bench.table.add(Row {
        what: "chat: key → the frame that shows it, while an answer streams (median)".into(),
        pinion: time(median),
        ratio: format!(
            "99 of 100 below {}, all below {}; {} deltas a second, {} of processor time for each",
            time(late),
            time(typed.delays.largest()),
            thousands(typed.deltas_per_second.median() as usize),
            time(typed.work.median() / typed.deltas_per_second.median()),
        ),
        target: "99 of 100 < 16 ms".into(),
        met: Some(late < PROMPT_FRAME),
        ..Row::default()
    });
    Ok(())
}

fn press_keys(bench: &Bench, typed: &mut Typed) -> Fallible<()> {
    let home = bench.home()?;
    let mut terminal = start(bench, &home, &[])?;
    terminal.wait_for("the model's name", is_ready)?;
    terminal.press("Go\r")?;
    terminal.wait_for("the answer", |screen| newest(screen) > 100)?;
    let begun = (
        Instant::now(),
        newest(terminal.screen()),
        terminal.processor_time(),
    );
    let mut written = String::new();
    for number in 0..KEYS {
        // At irregular times, so that neither frames nor deltas are in step with the keys.
        terminal.rest(Duration::from_micros(
            9_000 + number as u64 * 7_919 % 31_000,
        ))?;
        let key = match number / LETTERS % 2 {
            0 => {
                let letter = char::from(b'a' + (number % 26) as u8);
                written.push(letter);
                letter.to_string()
            }
            _ => {
                written.pop();
                BACKSPACE.to_owned()
            }
        };
        let pressed = Instant::now();
        terminal.press(&key)?;
        let seen = terminal.wait_for("a key", |screen| {
            screen.editor().is_some_and(|(_, text)| text == written)
        })?;
        typed.delays.add_time(seen - pressed);
    }
    let (since, first, work) = begun;
    let seconds = since.elapsed().as_secs_f64();
    let deltas = newest(terminal.screen()).saturating_sub(first) as f64;
    typed.deltas_per_second.add(deltas / seconds);
    let work = terminal.processor_time().saturating_sub(work);
    typed.work.add(work.as_secs_f64() / seconds);
    if newest(terminal.screen()) + 100 > DELTAS {
        return Err("the answer ended before the last key".into());
    }
    Ok(())
}

const DELTAS: usize = 16_000;

/// Returns a typical answer of numbered words: paragraphs, a list and code. One word per millisecond; now and then two,
/// because a pause is never shorter than requested.
fn answer() -> Vec<Value> {
    let mut pieces = Vec::new();
    for number in 0..DELTAS {
        let ends_line = number % 10 == 9;
        let word = match number % 200 {
            0 => format!("\n\n## Part n{number}\n\n"),
            120 => format!("\n\n```rust\nlet n{number} = "),
            121..159 if ends_line => format!("n{number};\nlet total = "),
            121..159 => format!("n{number} + "),
            159 => format!("n{number};\n```\n\n"),
            160..200 if ends_line => format!("n{number}\n- "),
            _ => format!("*word* n{number} "),
        };
        pieces.push(json!(word));
        if number % 8 != 7 {
            pieces.push(json!({"delay_ms": 1}));
        }
    }
    pieces
}

/// Returns the highest number of a word on the screen.
fn newest(screen: &Screen) -> usize {
    numbers(screen, "n").max().unwrap_or(0)
}

/// Returns the numbers on the screen that follow `mark`.
fn numbers(screen: &Screen, mark: &'static str) -> impl Iterator<Item = usize> {
    let lines: Vec<String> = screen.lines().collect();
    let numbers = move |line: String| -> Vec<usize> {
        let parts = line.split(mark).skip(1);
        let digits = parts.map(|part| part.split(|char: char| !char.is_ascii_digit()).next());
        digits.filter_map(|digits| digits?.parse().ok()).collect()
    };
    lines.into_iter().flat_map(numbers)
}

fn long_session(bench: &mut Bench) -> Fallible<()> {
    let [mut opened, mut paged, mut memory, mut grown] = [const { Samples::new() }; 4];
    let last = format!("({})", open::ENTRIES - 1);
    for _ in 0..bench.rounds.ours {
        let home = bench.home()?;
        let file = home.root().join("long.jsonl");
        fs::write(&file, open::session(&home.work()))?;
        let mut terminal = start(bench, &home, &["--session", &file.to_string_lossy()])?;
        let seen = terminal.wait_for("the last message", |screen| screen.shows(&last))?;
        opened.add_time(seen - terminal.started);
        // Until nothing moves by itself any more.
        terminal.wait_for("the model's name", is_ready)?;
        terminal.rest(Duration::from_millis(300))?;
        let before = terminal.peak_memory();
        for _ in 0..PAGES {
            paged.add_time(page_up(&mut terminal)?);
        }
        memory.add(terminal.peak_memory() as f64);
        grown.add(terminal.peak_memory().saturating_sub(before) as f64);
    }
    let session = format!("session of {} entries", thousands(open::ENTRIES));
    bench.table.add(Row {
        what: format!("chat, {session}: spawn → a frame with its last message"),
        pinion: time(opened.median()),
        target: "< 100 ms".into(),
        met: Some(opened.median() < 0.100),
        ..Row::default()
    });
    bench.table.add(Row {
        what: format!("the same: Page Up → its frame, {PAGES} in a row (median)"),
        pinion: time(paged.median()),
        ratio: format!(
            "99 of 100 below {}; peak memory {}, {} of it for the pages",
            time(paged.at(0.99)),
            size(memory.median()),
            size(grown.median())
        ),
        target: "99 of 100 < 16 ms".into(),
        met: Some(paged.at(0.99) < PROMPT_FRAME),
        ..Row::default()
    });
    Ok(())
}

/// Looks at the page before; how long it took to be seen.
fn page_up(terminal: &mut Terminal) -> Fallible<Duration> {
    let before = oldest(terminal.screen());
    let pressed = Instant::now();
    terminal.press(PAGE_UP)?;
    let seen = terminal.wait_for("the page before", |screen| oldest(screen) < before)?;
    Ok(seen - pressed)
}

/// Returns the lowest number of a message on the screen.
fn oldest(screen: &Screen) -> usize {
    let words = numbers(screen, "(");
    let paths = numbers(screen, "part_");
    words.chain(paths).min().unwrap_or(usize::MAX)
}
