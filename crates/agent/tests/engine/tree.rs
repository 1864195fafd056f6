//! The session tree and the answers that read a session: navigation, labels, statistics, entries.

use pinion_agent::{Answer, Command, Navigation, Stats};
use serde_json::Value;

use crate::bench::{Bench, bench};
use crate::provider::says;

async fn question(bench: &Bench, text: &str) -> String {
    let Ok(Answer::ForkMessages(messages)) = bench.ask(Command::GetForkMessages).await else {
        panic!("the messages of the user")
    };
    let found = messages.into_iter().find(|(_, asked)| asked == text);
    found.expect("the message").0
}

async fn navigate(bench: &Bench, target_id: String) -> Option<String> {
    let navigation = Navigation {
        target_id,
        summary: None,
        label: Some("here".to_owned()),
    };
    match bench.ask(Command::Navigate(navigation)).await {
        Ok(Answer::Navigated {
            text,
            cancelled: false,
        }) => text,
        other => panic!("{other:?}"),
    }
}

async fn entries(bench: &Bench) -> Vec<Value> {
    match bench.ask(Command::GetEntries { since: None }).await {
        Ok(Answer::Entries { entries, .. }) => entries
            .iter()
            .map(|entry| serde_json::from_str(entry.get()).unwrap())
            .collect(),
        other => panic!("{other:?}"),
    }
}

async fn stats(bench: &Bench) -> Stats {
    match bench.ask(Command::GetStats).await {
        Ok(Answer::Stats(stats)) => *stats,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_question_that_is_navigated_to_can_be_asked_differently() {
    let mut bench = bench(vec![says("one"), says("two"), says("other")]);
    bench.run("first").await;
    bench.run("second").await;
    let second = question(&bench, "second").await;
    assert_eq!(navigate(&bench, second).await.as_deref(), Some("second"));
    assert_eq!(
        bench.conversation().await,
        ["user: first", "assistant: one"]
    );
    bench.run("differently").await;
    let conversation = bench.conversation().await;
    assert_eq!(conversation[2..], ["user: differently", "assistant: other"]);
    // Both branches are in the session.
    let all = Value::from(entries(&bench).await).to_string();
    assert!(
        all.contains("\"two\"") && all.contains("\"other\""),
        "{all}"
    );
    assert!(all.contains("\"label\":\"here\""), "{all}");
}

#[tokio::test]
async fn a_navigation_to_an_unknown_entry_is_refused() {
    let mut bench = bench(vec![says("one"), says("on")]);
    bench.run("first").await;
    let error = bench
        .refused(Command::Navigate(Navigation {
            target_id: "unknown".to_owned(),
            summary: None,
            label: None,
        }))
        .await;
    assert_eq!(error.code(), "entry_not_found");
    bench.assert_continues("on").await;
}

#[tokio::test]
async fn totals_are_the_sums_over_the_answers() {
    let mut bench = bench(vec![says("one").uses(100), says("two").uses(250)]);
    bench.run("first").await;
    bench.run("second").await;
    let stats = stats(&bench).await;
    assert_eq!((stats.tokens.input, stats.tokens.output), (350, 20));
    assert_eq!((stats.user_messages, stats.assistant_messages), (2, 2));
}
