//! Tests that only the visible part is laid out, and that it stays in place.

use super::*;
use crate::transcript::Scroll;

const WIDTH: u16 = 80;
const HEIGHT: u16 = 24;

/// Numbered questions and answers.
fn long(messages: usize) -> Vec<Arc<Message>> {
    let message = |at: usize| match at % 2 {
        0 => user(&format!("question {at}")),
        _ => answer(
            vec![Block::text(format!(
                "answer {at}\n\nwith a second paragraph"
            ))],
            StopReason::Stop,
            None,
        ),
    };
    (0..messages).map(message).collect()
}

fn loaded(messages: usize) -> Transcript {
    let mut transcript = Transcript::new();
    transcript.load(&long(messages));
    transcript
}

#[test]
fn only_visible_messages_of_ten_thousand_are_laid_out() {
    let test_look = TestLook::new();
    let mut transcript = loaded(10_000);
    assert_eq!(transcript.view.layouts, 0);

    let first = screen(&mut transcript, WIDTH, HEIGHT, &test_look);
    assert!(first.contains("answer 9999"), "{first}");
    let of_one_screen = transcript.view.layouts;
    assert!(of_one_screen <= 24, "{of_one_screen}");

    screen(&mut transcript, WIDTH, HEIGHT, &test_look);
    assert_eq!(
        transcript.view.layouts, of_one_screen,
        "drawn again, laid out again"
    );

    for _ in 0..100 {
        transcript.scroll(Scroll::PageUp);
        screen(&mut transcript, WIDTH, HEIGHT, &test_look);
    }
    let of_hundred_pages = transcript.view.layouts;
    assert!(of_hundred_pages <= 100 * 24, "{of_hundred_pages}");
    let warm = transcript
        .entries
        .iter()
        .filter(|entry| entry.has_lines())
        .count();
    assert!(warm <= 600, "{warm} entries keep their lines");

    transcript.scroll(Scroll::Start);
    let top = screen(&mut transcript, WIDTH, HEIGHT, &test_look);
    assert!(top.starts_with("> question 0\n"), "{top}");
    assert!(transcript.view.layouts <= of_hundred_pages + 48);
}

#[test]
fn a_resize_lays_out_what_is_seen() {
    let test_look = TestLook::new();
    let mut transcript = loaded(10_000);
    for _ in 0..20 {
        transcript.scroll(Scroll::PageUp);
        screen(&mut transcript, WIDTH, HEIGHT, &test_look);
    }
    let before = transcript.view.layouts;
    let narrow = screen(&mut transcript, 40, HEIGHT, &test_look);
    assert!(transcript.view.layouts - before <= 30);
    let first_line = |screen: &str| screen.trim_start().lines().next().unwrap().to_owned();
    let wide = screen(&mut transcript, WIDTH, HEIGHT, &test_look);
    assert_eq!(first_line(&narrow), first_line(&wide));
}

#[test]
fn a_delta_lays_out_one_entry() {
    let test_look = TestLook::new();
    let mut transcript = loaded(1_000);
    screen(&mut transcript, WIDTH, HEIGHT, &test_look);
    let events = streamed(&answer(
        vec![Block::text("word ".repeat(50))],
        StopReason::Stop,
        None,
    ));
    apply(&mut transcript, events[..3].iter().cloned());
    screen(&mut transcript, WIDTH, HEIGHT, &test_look);
    let before = transcript.view.layouts;
    for event in &events[3..events.len() - 2] {
        transcript.apply(event);
        screen(&mut transcript, WIDTH, HEIGHT, &test_look);
    }
    assert_eq!(
        transcript.view.layouts, before,
        "an entry beside the growing one was laid out"
    );
}

#[test]
fn the_end_is_followed_until_the_user_scrolls_up() {
    let test_look = TestLook::new();
    let mut transcript = loaded(100);
    screen(&mut transcript, WIDTH, HEIGHT, &test_look);
    apply(&mut transcript, said(&user("new")));
    assert!(transcript.follows_end());
    assert!(screen(&mut transcript, WIDTH, HEIGHT, &test_look).ends_with("> new"));

    transcript.scroll(Scroll::Up(10));
    assert!(!transcript.follows_end());
    let looked_at = screen(&mut transcript, WIDTH, HEIGHT, &test_look);
    assert!(!transcript.follows_end());
    apply(
        &mut transcript,
        streamed(&answer(
            vec![Block::text("more\n\n".repeat(40))],
            StopReason::Stop,
            None,
        )),
    );
    let after = screen(&mut transcript, WIDTH, HEIGHT, &test_look);
    let above_end = looked_at.lines().take(14).collect::<Vec<_>>();
    assert_eq!(after.lines().take(14).collect::<Vec<_>>(), above_end);

    transcript.scroll(Scroll::Down(10_000));
    screen(&mut transcript, WIDTH, HEIGHT, &test_look);
    assert!(transcript.follows_end());
    apply(&mut transcript, said(&user("newer")));
    assert!(screen(&mut transcript, WIDTH, HEIGHT, &test_look).ends_with("> newer"));
}

#[test]
fn what_changes_above_does_not_move_what_is_looked_at() {
    let test_look = TestLook::new();
    let mut transcript = Transcript::new();
    let block = call("c", "bash", serde_json::json!({"command": "make"}));
    let made = TestCall::new(&block, output("1\n2\n3\n4\n5\n6\n7", None), false);
    apply(
        &mut transcript,
        streamed(&answer(vec![block], StopReason::ToolUse, None)),
    );
    transcript.apply(&made.start());
    for at in 0..60 {
        apply(&mut transcript, said(&user(&format!("line {at}"))));
    }
    transcript.scroll(Scroll::Up(30));
    let before = screen(&mut transcript, WIDTH, HEIGHT, &test_look);
    transcript.apply(&made.update("a\nb\nc\nd"));
    assert_eq!(screen(&mut transcript, WIDTH, HEIGHT, &test_look), before);
    apply(&mut transcript, made.events());
    assert_eq!(screen(&mut transcript, WIDTH, HEIGHT, &test_look), before);
}

#[test]
fn scrolling_up_and_down_comes_back() {
    let test_look = TestLook::new();
    let mut transcript = loaded(200);
    screen(&mut transcript, WIDTH, HEIGHT, &test_look);
    transcript.scroll(Scroll::Up(57));
    let there = screen(&mut transcript, WIDTH, HEIGHT, &test_look);
    for (away, back) in [
        (Scroll::Up(13), Scroll::Down(13)),
        (Scroll::PageUp, Scroll::PageDown),
        (Scroll::Down(40), Scroll::Up(40)),
    ] {
        transcript.scroll(away);
        assert_ne!(screen(&mut transcript, WIDTH, HEIGHT, &test_look), there);
        transcript.scroll(back);
        assert_eq!(screen(&mut transcript, WIDTH, HEIGHT, &test_look), there);
    }
    transcript.scroll(Scroll::Start);
    transcript.scroll(Scroll::Up(5));
    assert!(screen(&mut transcript, WIDTH, HEIGHT, &test_look).starts_with("> question 0"));
}

#[test]
fn what_fits_is_drawn_from_the_top() {
    let test_look = TestLook::new();
    let mut transcript = loaded(2);
    transcript.scroll(Scroll::Up(3));
    let all = screen(&mut transcript, WIDTH, HEIGHT, &test_look);
    assert_eq!(all, "> question 0\n\nanswer 1\n\nwith a second paragraph");
    assert!(transcript.follows_end());
}

#[test]
fn unfolding_shows_the_same_place() {
    let mut test_look = TestLook::new();
    let mut transcript = loaded(100);
    screen(&mut transcript, WIDTH, HEIGHT, &test_look);
    transcript.scroll(Scroll::Up(40));
    let before = screen(&mut transcript, WIDTH, HEIGHT, &test_look);
    test_look.tools = test_look.tools.toggled();
    assert_eq!(screen(&mut transcript, WIDTH, HEIGHT, &test_look), before);
}
