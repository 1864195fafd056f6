use proptest::prelude::*;

use super::*;

const LIMIT: usize = 32 * 1024 * 1024;

/// Reads `bytes` in pieces of these lengths, repeatedly, and splits after each.
fn read(lines: &mut Lines, mut bytes: &[u8], pieces: &[usize]) -> Vec<Result<Bytes, TooLong>> {
    let mut cut = Vec::new();
    for &piece in pieces.iter().cycle() {
        if bytes.is_empty() {
            break;
        }
        let room = lines.room();
        let free = room.capacity() - room.len();
        let (now, later) = bytes.split_at(piece.min(free).min(bytes.len()));
        room.extend_from_slice(now);
        bytes = later;
        while let Some(line) = lines.next() {
            let is_last = line.is_err();
            cut.push(line);
            if is_last {
                return cut;
            }
        }
    }
    cut.extend(lines.finish());
    cut
}

fn all(limit: usize, text: &str) -> Vec<Result<Bytes, TooLong>> {
    read(&mut Lines::new(limit), text.as_bytes(), &[1000])
}

fn line(text: &str) -> Result<Bytes, TooLong> {
    Ok(Bytes::copy_from_slice(text.as_bytes()))
}

#[test]
fn lines_end_at_lf_alone_and_lose_one_cr() {
    let text = "a\r\n\u{2028}b\r\r\nc\rd\n\nlast";
    let expected = ["a", "\u{2028}b\r", "c\rd", "", "last"].map(line);
    assert_eq!(all(100, text), expected);
}

#[test]
fn a_line_over_the_limit_is_too_long_even_before_it_ends() {
    assert_eq!(all(4, "abcd\r\nabcde\n"), [line("abcd"), Err(TooLong)]);
    assert_eq!(all(4, "abcdef"), [Err(TooLong)]);
    let mut lines = Lines::new(4);
    lines.room().extend_from_slice(b"abcdef");
    assert_eq!(lines.next(), Some(Err(TooLong)));
}

#[test]
fn long_lines_are_read_into_the_same_buffers_again_and_again() {
    let mut lines = Lines::new(LIMIT);
    lines.enlarge();
    let mut seen = std::collections::HashSet::new();
    let text = "x".repeat(COPY_BELOW * 2) + "\n";
    for _ in 0..100 {
        // The consumer of the lines is one line behind.
        let mut held = None;
        for cut in read(&mut lines, text.repeat(5).as_bytes(), &[LARGE]) {
            assert_eq!(cut.as_ref().map(Bytes::len), Ok(COPY_BELOW * 2));
            held = cut.ok();
        }
        seen.insert(lines.unfinished.as_ptr().addr() / LARGE);
        drop(held);
    }
    assert!(lines.spare.len() <= 3, "{} buffers", lines.spare.len());
    assert!(seen.len() <= 8, "{} places", seen.len());
}

#[test]
fn lines_that_are_held_stay_as_they_are() {
    let mut lines = Lines::new(LIMIT);
    let text: Vec<String> = (0..60)
        .map(|number| format!("{number}-").repeat(COPY_BELOW / 2))
        .collect();
    let cut = read(&mut lines, text.join("\n").as_bytes(), &[LARGE, 17, SMALL]);
    let expected: Vec<_> = text.iter().map(|text| line(text)).collect();
    assert_eq!(cut.len(), expected.len());
    assert!(cut == expected);
    assert!(lines.spare.len() <= SPARE_BUFFERS);
}

#[test]
fn an_idle_reader_holds_no_buffers() {
    let mut lines = Lines::new(LIMIT);
    lines.enlarge();
    let text = ("x".repeat(COPY_BELOW) + "\n").repeat(40);
    drop(read(&mut lines, text.as_bytes(), &[LARGE]));
    lines.shrink();
    assert_eq!((lines.spare.len(), lines.unfinished.capacity()), (0, 0));
}

proptest! {
    #[test]
    fn lines_do_not_depend_on_how_bytes_arrive(
        lengths in proptest::collection::vec(prop_oneof![0usize..40, COPY_BELOW - 2..COPY_BELOW + 2, 0..SMALL * 3], 0..12),
        pieces in proptest::collection::vec(prop_oneof![1000usize..5000, SMALL - 1..SMALL + 2, Just(LARGE)], 1..6),
        large in any::<bool>(),
    ) {
        let text: Vec<String> = lengths.iter().map(|length| "ab\r".repeat(length / 3 + 1)).collect();
        let whole: String = text.iter().map(|line| format!("{line}\n")).collect();
        let mut lines = Lines::new(SMALL * 4);
        if large {
            lines.enlarge();
        }
        let cut = read(&mut lines, whole.as_bytes(), &pieces);
        let expected: Vec<_> = text.iter().map(|text| line(text.strip_suffix('\r').unwrap_or(text))).collect();
        prop_assert!(cut == expected);
    }
}
