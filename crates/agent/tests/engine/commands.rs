//! Commands during a run and without one: one answer each, also when the session ends.

use std::time::Duration;

use pinion_agent::{Answer, Command, EngineError, Origin, Prompt};
use pinion_message::ThinkingLevel;

use crate::bench::{Parts, bench, bench_with};
use crate::events::only;
use crate::provider::says;

fn set_model(id: &str) -> Command {
    Command::SetModel {
        provider: "bench".to_owned(),
        id: id.to_owned(),
    }
}

fn new_session() -> Command {
    Command::NewSession {
        parent: None,
        prepare: None,
        origin: Origin::Client,
    }
}

#[tokio::test(start_paused = true)]
async fn commands_are_answered_while_the_model_is_silent() {
    let mut bench = bench(vec![says("a").waits("end")]);
    bench.prompt("go").await;
    bench.until("delta a").await;
    for command in [
        Command::GetState,
        Command::GetMessages,
        Command::GetStats,
        Command::GetLastAssistantText,
        Command::GetAvailableModels,
        Command::GetThinkingLevels,
        Command::GetForkMessages,
        Command::GetEntries { since: None },
        Command::GetTree,
        Command::GetCommands,
        Command::Noop,
        Command::AbortRetry,
        Command::AbortBash,
        Command::SetName("a name".to_owned()),
    ] {
        let name = format!("{command:?}");
        assert!(bench.ask(command).await.is_ok(), "{name}");
    }
    assert!(bench.state().await.is_streaming, "the run is still active");
    let idle = bench.send(Command::WaitForIdle).await;
    bench.gates.open("end");
    assert!(idle.await.unwrap().is_ok());
    let lines = bench.news();
    assert_eq!(lines.last().unwrap(), "settled aborted=false");
    assert_eq!(only(&lines, &["name"]), ["name Some(\"a name\")"]);
}

#[tokio::test(start_paused = true)]
async fn a_model_is_selected_by_its_whole_name_and_used_from_the_next_run_on() {
    let mut bench = bench(vec![says("a").waits("end"), says("b"), says("c")]);
    bench.prompt("go").await;
    bench.until("delta a").await;
    let selected = bench.ask(set_model("thinker")).await;
    assert!(matches!(selected, Ok(Answer::Model(model)) if model.id == "thinker"));
    bench.steer("more").await;
    bench.gates.open("end");
    bench.settled().await;
    bench.run("again").await;
    let asked = bench.asked();
    let models: Vec<&str> = asked.iter().map(|asked| asked.model.as_str()).collect();
    assert_eq!(models, ["plain", "plain", "thinker"]);
}

#[tokio::test(start_paused = true)]
async fn unknown_models_and_models_without_a_key_are_refused() {
    let bench = bench(Vec::new());
    let error = bench.refused(set_model("think")).await;
    assert_eq!(error.to_string(), "Model not found: bench/think");
    let error = bench.refused(set_model("locked")).await;
    assert_eq!(error.to_string(), "No API key for bench/locked");
    assert_eq!(bench.state().await.model.unwrap().id, "plain");
    assert!(bench.preferences.names().is_empty());
}

#[tokio::test(start_paused = true)]
async fn cycling_visits_the_models_with_keys_and_sets_a_level_that_they_support() {
    let bench = bench(Vec::new());
    let mut visited = Vec::new();
    for _ in 0..3 {
        let Ok(Answer::Cycled(Some(cycled))) = bench.ask(Command::CycleModel).await else {
            panic!("there are two models")
        };
        visited.push((cycled.model.id.clone(), cycled.thinking_level));
    }
    let thinker = ("thinker".to_owned(), ThinkingLevel::Medium);
    let plain = ("plain".to_owned(), ThinkingLevel::Off);
    assert_eq!(visited, [thinker.clone(), plain, thinker]);
}

#[tokio::test(start_paused = true)]
async fn a_prompt_without_a_model_is_refused() {
    let parts = Parts {
        without_model: true,
        ..Parts::default()
    };
    let mut bench = bench_with(vec![says("on")], parts);
    let error = bench.refused(Command::Prompt(Prompt::new("go"))).await;
    assert!(matches!(error, EngineError::NoModel));
    assert!(bench.news().is_empty());
    bench.ask(set_model("plain")).await.unwrap();
    bench.assert_continues("on").await;
}

#[tokio::test(start_paused = true)]
async fn a_name_must_not_be_empty() {
    let bench = bench(Vec::new());
    let error = bench.refused(Command::SetName("  ".to_owned())).await;
    assert!(matches!(error, EngineError::EmptyName));
    assert_eq!(bench.state().await.session_name, None);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_stopped_answers_everything_and_ends() {
    let mut bench = bench(vec![says("a").hangs()]);
    bench.prompt("go").await;
    bench.until("delta a").await;
    let idle = bench.send(Command::WaitForIdle).await;
    let compacting = bench.send(Command::Compact { instructions: None }).await;
    bench.session.stopper().stop();
    for pending in [idle, compacting] {
        // Each is answered, with a result or an error.
        let _ = pending.await.expect("an answer");
    }
    bench.until("settled").await;
    let Ok(ended) = tokio::time::timeout(Duration::from_secs(60), &mut bench.task).await else {
        panic!("the task ends")
    };
    ended.unwrap();
    let error = bench.refused(Command::GetState).await;
    assert!(matches!(error, EngineError::Dropped));
}

// The new session is made on another thread, which a paused clock would overtake.
#[tokio::test]
async fn a_new_session_ends_the_run_first_and_empties_the_queues() {
    let mut bench = bench(vec![says("a").hangs(), says("on")]);
    bench.prompt("go").await;
    bench.until("delta a").await;
    bench.steer("too late").await;
    let before = bench.state().await.session_id;
    let replaced = bench.ask(new_session()).await;
    assert!(
        matches!(replaced, Ok(Answer::Cancelled(false))),
        "{replaced:?}"
    );
    let lines = bench.news();
    assert_eq!(only(&lines, &["agent end", "settled"]).len(), 2);
    let state = bench.state().await;
    assert_ne!(state.session_id, before);
    assert_eq!((state.message_count, state.pending_message_count), (0, 0));
    bench.assert_continues("on").await;
}

#[tokio::test]
async fn a_fork_during_a_run_ends_it_and_starts_before_the_chosen_message() {
    let mut bench = bench(vec![says("one"), says("two").hangs(), says("on")]);
    bench.run("first").await;
    bench.prompt("second").await;
    bench.until("delta two").await;
    let Ok(Answer::ForkMessages(messages)) = bench.ask(Command::GetForkMessages).await else {
        panic!("the messages of the user")
    };
    let (entry_id, text) = messages.last().unwrap().clone();
    assert_eq!(text, "second");
    let fork = Command::Fork {
        entry_id,
        position: Default::default(),
        origin: Origin::Client,
    };
    let forked = bench.ask(fork).await;
    assert!(
        matches!(&forked, Ok(Answer::Forked { text: Some(text), cancelled: false }) if text == "second"),
        "{forked:?}"
    );
    let conversation = bench.conversation().await;
    assert_eq!(conversation, ["user: first", "assistant: one"]);
    bench.assert_continues("on").await;
}

#[tokio::test]
async fn a_fork_of_an_unknown_entry_is_refused_and_the_run_continues() {
    let mut bench = bench(vec![says("a").waits("end")]);
    bench.prompt("go").await;
    bench.until("delta a").await;
    let fork = Command::Fork {
        entry_id: "unknown".to_owned(),
        position: Default::default(),
        origin: Origin::Client,
    };
    bench.refused(fork).await;
    assert!(bench.state().await.is_streaming);
    bench.gates.open("end");
    let lines = bench.settled().await;
    assert_eq!(lines.last().unwrap(), "settled aborted=false");
}
