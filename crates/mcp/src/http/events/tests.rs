use futures_util::FutureExt;
use proptest::prelude::*;

use super::*;

fn message(number: u64) -> Bytes {
    Bytes::from(number.to_string())
}

fn numbered() -> Arc<EventLog> {
    EventLog::new(1, Resumption::Numbered { primed: false })
}

#[tokio::test]
async fn a_sender_waits_for_its_reader_and_for_nobody_else() {
    let log = numbered();
    let reader = log.attach(None);
    for number in 1..=MAX_UNREAD as u64 {
        assert!(log.send(message(number)).now_or_never().is_some());
    }
    let mut blocked = log.send(message(99));
    assert!((&mut blocked).now_or_never().is_none());
    assert_eq!(reader.next().await, Some((1, message(1))));
    assert!((&mut blocked).now_or_never().is_some());
    let mut blocked = log.send(message(100));
    assert!((&mut blocked).now_or_never().is_none());
    drop(reader);
    assert!(blocked.now_or_never().is_some());
    for number in 0..1000 {
        assert!(log.send(message(number)).now_or_never().is_some());
    }
    assert!(log.state().events.len() <= MAX_STORED_EVENTS);
}

#[tokio::test]
async fn one_answer_is_told_from_a_stream() {
    let soon = Duration::from_millis(10);
    let log = numbered();
    let reader = log.attach(None);
    log.finish(StatusCode::NOT_FOUND, Some(message(1)));
    let first = reader.first(soon).await;
    assert!(
        matches!(&first, AnswerForm::Whole(StatusCode::NOT_FOUND, Some(it)) if *it == message(1))
    );
    assert_eq!(log.delivered().await, Delivery::Whole);

    let log = numbered();
    let reader = log.attach(None);
    assert!(matches!(reader.first(soon).await, AnswerForm::Stream));
    log.push(message(1));
    assert!(matches!(reader.first(soon).await, AnswerForm::Stream));
    log.finish(StatusCode::OK, Some(message(2)));
    assert!(matches!(reader.first(soon).await, AnswerForm::Stream));
    // Only the first end counts.
    log.finish(StatusCode::OK, Some(message(3)));
    assert_eq!(reader.next().await, Some((1, message(1))));
    assert_eq!(reader.next().await, Some((2, message(2))));
    assert_eq!(reader.next().await, None);
    assert_eq!(log.delivered().await, Delivery::Events);
}

#[tokio::test]
async fn a_later_reader_takes_over() {
    let log = numbered();
    let first = log.attach(None);
    let second = log.attach(None);
    log.push(message(1));
    assert_eq!(first.next().await, None);
    // Dropping it does not disturb the other.
    drop(first);
    assert_eq!(second.next().await, Some((1, message(1))));
    assert!(log.is_read());
}

#[derive(Debug, Clone)]
enum Step {
    Say,
    Read,
    Lose,
    ComeBack,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => Just(Step::Say),
        4 => Just(Step::Read),
        1 => Just(Step::Lose),
        2 => Just(Step::ComeBack),
    ];
    proptest::collection::vec(step, 0..300)
}

proptest! {
    /// A client may be lost and reconnect any number of times: it reads messages in order and none twice, misses only
    /// progress sent while it was away, and reads the answer in the end.
    #[test]
    fn a_client_that_comes_back_misses_nothing_that_matters(steps in steps()) {
        let log = numbered();
        let mut reader = Some(log.attach(None));
        let (mut said, mut last) = (0, 0);
        // Messages from here on were sent while a client was reading.
        let mut heard_from = 1;
        for step in steps {
            match step {
                Step::Say => {
                    if log.send(message(said + 1)).now_or_never().is_some() {
                        said += 1;
                    } else {
                        prop_assert!(reader.is_some());
                    }
                }
                Step::Read => {
                    let read = reader.as_ref().and_then(|reader| reader.next().now_or_never());
                    if let Some(read) = read {
                        let (number, text) = read.expect("it is not over");
                        prop_assert_eq!(text, message(number));
                        prop_assert!(number > last);
                        if last + 1 >= heard_from {
                            prop_assert_eq!(number, last + 1);
                        }
                        last = number;
                    }
                }
                Step::Lose => reader = None,
                Step::ComeBack => {
                    if reader.is_none() {
                        heard_from = said + 1;
                    }
                    reader = Some(log.attach(Some(last)));
                }
            }
        }
        log.finish(StatusCode::OK, Some(message(said + 1)));
        let reader = log.attach(Some(last));
        while let Some((number, _)) = reader.next().now_or_never().expect("no waiting after the end") {
            prop_assert!(number > last);
            last = number;
        }
        prop_assert_eq!(last, said + 1);
    }
}
