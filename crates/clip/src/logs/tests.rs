use super::file::MAX_FILE;
use super::*;
use std::fs;

fn messages(entries: &[LogEntry]) -> Vec<&str> {
    entries.iter().map(|entry| &*entry.message).collect()
}

#[test]
fn levels_are_read_from_plain_lines() {
    for (line, level) in [
        ("all fine", Level::Info),
        ("ERROR: no", Level::Error),
        ("[warn] hm", Level::Warn),
        ("  debug x=1", Level::Debug),
        ("errors were none", Level::Info),
        ("", Level::Info),
    ] {
        assert_eq!(Level::of_line(line), level, "{line}");
    }
    assert_eq!(Level::parse("verbose"), Level::Info);
}

#[test]
fn memory_is_bounded_by_lines_and_bytes() {
    let log = ClipLog::in_memory();
    for number in 0..KEPT_LINES * 2 {
        log.push(Level::Info, Origin::Ipc, &number.to_string());
    }
    let tail = log.tail(usize::MAX);
    assert_eq!(tail.len(), KEPT_LINES);
    assert_eq!(&*tail.last().unwrap().message, "1999");
    assert_eq!(messages(&log.tail(2)), ["1998", "1999"]);
    for _ in 0..100 {
        log.push(Level::Info, Origin::Ipc, &"ä".repeat(MAX_LINE));
    }
    let kept: usize = log
        .tail(usize::MAX)
        .iter()
        .map(|entry| entry.message.len())
        .sum();
    assert!(kept <= KEPT_BYTES);
}

#[test]
fn a_file_is_rotated_once_and_read_back() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("logs/todo.log");
    let log = ClipLog::at(&path);
    log.mask("s3cret-token");
    log.stderr(b"WARN: from s3cret-token");
    log.push(Level::Error, Origin::Ipc, "two\nlines");
    let line = "x".repeat(1000);
    for _ in 0..3000 {
        log.stderr(line.as_bytes());
    }
    log.push(Level::Debug, Origin::Provider, "last");
    assert!(fs::metadata(&path).unwrap().len() <= MAX_FILE);
    let rotated = fs::read_to_string(place.path().join("logs/todo.log.1")).unwrap();
    assert!(rotated.len() as u64 <= MAX_FILE);
    drop(log);

    let log = ClipLog::at(&path);
    let tail = log.tail(2);
    assert_eq!(tail[0].message.len(), 1000);
    let last = &tail[1];
    assert_eq!(
        (last.level, last.origin, &*last.message),
        (Level::Debug, Origin::Provider, "last")
    );
}

#[test]
fn lines_that_are_no_longer_in_memory_are_found_in_the_files() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("todo.log");
    let log = Arc::new(ClipLog::at(&path));
    let all = |log: &Arc<ClipLog>| log.recall(usize::MAX, |_| true).0;
    assert_eq!(all(&log), []);
    for number in 0..5 * KEPT_LINES {
        let level = match number % 1000 {
            7 => Level::Error,
            _ => Level::Info,
        };
        log.push(level, Origin::Ipc, &number.to_string());
    }
    let lines = all(&log);
    let wanted: Vec<String> = (0..5 * KEPT_LINES).map(|it| it.to_string()).collect();
    assert_eq!(messages(&lines), wanted);
    let (lines, _) = log.recall(1500, |_| true);
    assert_eq!(messages(&lines), wanted[3500..]);
    let (lines, _) = log.recall(3, |line| line.level == Level::Error);
    assert_eq!(messages(&lines), ["2007", "3007", "4007"]);
    assert_eq!(log.recall(0, |_| true).0, []);
    // Of two files the older one comes first, and what was rotated away is gone.
    let line = "x".repeat(1000);
    for number in 0..3000 {
        log.push(Level::Info, Origin::Ipc, &format!("{number} {line}"));
    }
    let lines = all(&log);
    let first: usize = 3000 - lines.len();
    assert!((1..2500).contains(&first), "{first}");
    for (line, number) in lines.iter().zip(first..) {
        assert!(line.message.starts_with(&format!("{number} ")));
    }
    drop(log);
    let log = Arc::new(ClipLog::at(&path));
    assert_eq!(all(&log).len(), lines.len());
    fs::write(&path, vec![b'['; 3 << 20]).unwrap();
    all(&log);
}

#[tokio::test]
async fn recall_returns_a_follower_of_the_next_lines() {
    let log = Arc::new(ClipLog::in_memory());
    for number in 0..3 {
        log.push(Level::Info, Origin::Ipc, &number.to_string());
    }
    let (past, mut follower) = log.recall(2, |line| &*line.message != "2");
    assert_eq!(messages(&past), ["0", "1"]);
    log.push(Level::Info, Origin::Ipc, "3");
    let next = follower.next().await;
    assert!(matches!(next, Some(Followed::Line(line)) if &*line.message == "3"));
}

#[test]
fn a_line_has_its_own_time_if_that_is_plausible() {
    let log = ClipLog::in_memory();
    let now = Timestamp::now();
    let hour = SignedDuration::from_hours(1);
    for time in [now - hour, now + hour, Timestamp::UNIX_EPOCH] {
        log.push_with_time(time, Level::Info, Origin::Provider, "x");
    }
    let times: Vec<Timestamp> = log.tail(3).iter().map(|line| line.time).collect();
    assert_eq!(times[0], now - hour);
    for time in &times[1..] {
        assert!(*time >= now && *time < now + hour);
    }
}

#[test]
fn secrets_and_line_ends_stay_out_of_the_file() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("todo.log");
    let log = ClipLog::at(&path);
    log.mask("s3cret-token");
    log.stderr(b"WARN: from s3cret-token");
    log.push(Level::Error, Origin::Ipc, "two\nlines");
    let text = fs::read_to_string(&path).unwrap();
    assert!(!text.contains("s3cret"), "{text}");
    assert_eq!(text.lines().count(), 2);
    assert!(text.contains("] WARN: from ***\n"));
    assert!(text.contains("] [ipc error] two\\nlines\n"));
    assert_eq!(&*log.tail(1)[0].message, "two\nlines");
}

#[tokio::test]
async fn followers_get_every_line_or_the_number_they_missed() {
    let log = Arc::new(ClipLog::in_memory());
    for number in 0..3 {
        log.push(Level::Info, Origin::Ipc, &number.to_string());
    }
    let mut follower = log.follow(1);
    assert!(matches!(follower.next().await, Some(Followed::Line(line)) if &*line.message == "2"));
    let writer = log.clone();
    let wrote = tokio::spawn(async move { writer.push(Level::Info, Origin::Ipc, "3") });
    assert!(matches!(follower.next().await, Some(Followed::Line(line)) if &*line.message == "3"));
    wrote.await.unwrap();
    for number in 0..KEPT_LINES + 7 {
        log.push(Level::Info, Origin::Ipc, &number.to_string());
    }
    assert_eq!(follower.next().await, Some(Followed::Missed(7)));
    let mut lines = 0;
    log.close();
    while let Some(Followed::Line(_)) = follower.next().await {
        lines += 1;
    }
    assert_eq!(lines, KEPT_LINES);
}
