//! Random commands in random order: each is answered once, each run ends once, and the session stays usable.

use pinion_agent::{Answer, Command, Delivery, Navigation, Origin, Prompt};
use pinion_message::ThinkingLevel;
use serde_json::json;

use crate::bench::{Bench, PendingAnswer, bench};
use crate::provider::{Turn, calls, fails, says};

const SEEDS: u64 = 60;
const COMMANDS: usize = 30;

/// Pseudo-random numbers (xorshift); the same seed gives the same ones.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

fn random_turn(numbers: &mut Numbers) -> Turn {
    match numbers.below(8) {
        0 => fails("overloaded_error"),
        1 => fails("invalid request"),
        2 => calls("act", json!({"say": "done"})),
        3 => calls("act_alone", json!({"gate": "never"})),
        4 => says("a").breaks_off(),
        5 => says("slow").hangs(),
        6 => says("full").uses(199_000),
        _ => says("an answer"),
    }
}

fn random_command(numbers: &mut Numbers, entries: &[String]) -> Command {
    let queue = |delivery| Command::Queue {
        text: "queued".to_owned(),
        images: Vec::new(),
        delivery,
    };
    let target_id = match entries {
        [] => "unknown".to_owned(),
        some => some[numbers.below(some.len() as u64) as usize].clone(),
    };
    match numbers.below(18) {
        0..=3 => Command::Prompt(Prompt::new("go")),
        4 => Command::Prompt(Prompt {
            when_busy: Some(Delivery::Steer),
            ..Prompt::new("go or steer")
        }),
        5 => queue(Delivery::Steer),
        6 => queue(Delivery::FollowUp),
        7 | 8 => Command::Abort,
        9 => Command::AbortRetry,
        10 => Command::Compact { instructions: None },
        11 => Command::NewSession {
            parent: None,
            prepare: None,
            origin: Origin::Client,
        },
        12 => Command::ClearQueue,
        13 => Command::CycleModel,
        14 => Command::SetThinkingLevel(Some(ThinkingLevel::High)),
        15 => Command::CloneSession,
        16 => Command::Navigate(Navigation {
            target_id,
            summary: None,
            label: None,
        }),
        _ => Command::Fork {
            entry_id: target_id,
            position: Default::default(),
            origin: Origin::Client,
        },
    }
}

/// Gives the session a random number of chances to work.
async fn work(bench: &Bench, numbers: &mut Numbers) {
    for _ in 0..numbers.below(6) {
        tokio::task::yield_now().await;
    }
    if numbers.below(4) == 0 {
        bench.state().await;
    }
}

async fn entries(bench: &Bench) -> Vec<String> {
    let Ok(Answer::ForkMessages(messages)) = bench.ask(Command::GetForkMessages).await else {
        panic!("the messages of the user")
    };
    messages.into_iter().map(|(id, _)| id).collect()
}

async fn interleave(seed: u64) {
    let mut numbers = Numbers(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let script = (0..200).map(|_| random_turn(&mut numbers)).collect();
    let mut bench = bench(script);
    let mut answers: Vec<(String, PendingAnswer)> = Vec::new();
    for _ in 0..COMMANDS {
        let known = entries(&bench).await;
        let command = random_command(&mut numbers, &known);
        let name = format!("{command:?}");
        answers.push((name, bench.send(command).await));
        work(&bench, &mut numbers).await;
    }
    // Whatever hangs or waits for a retry ends with an abort.
    while {
        bench.abort().await;
        let state = bench.state().await;
        state.is_streaming || state.is_compacting
    } {}
    for (name, answer) in answers {
        assert!(answer.await.is_ok(), "seed {seed}: {name} has no answer");
    }
    let lines = bench.news();
    let count = |start: &str| lines.iter().filter(|line| line.starts_with(start)).count();
    assert_eq!(
        count("agent start"),
        count("agent end"),
        "seed {seed}: {lines:#?}"
    );
    assert_eq!(
        count("compaction start"),
        count("compaction end"),
        "seed {seed}: {lines:#?}"
    );
    let mut open = false;
    for line in &lines {
        match line.as_str() {
            "agent start" => assert!(!std::mem::replace(&mut open, true), "seed {seed}"),
            line if line.starts_with("agent end") => {
                assert!(std::mem::replace(&mut open, false), "seed {seed}");
            }
            _ => {}
        }
    }
}

#[tokio::test(start_paused = true)]
async fn any_interleaving_of_commands_is_answered_and_settles() {
    for seed in 1..=SEEDS {
        interleave(seed).await;
    }
}
