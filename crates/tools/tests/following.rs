//! Following the output of a user's command: all of it, sanitised, and no faster than the follower.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::sync::{Arc, Mutex};

use common::Workspace;
use futures_util::future::BoxFuture;
use pinion_message::{Mask, Secret};
use pinion_tools::{BashOutcome, Follower, ToolSettings, user_bash};
use tokio::sync::watch;

/// Stores the output, and records whether something came although there was no room.
#[derive(Debug)]
struct Reader {
    seen: Mutex<Seen>,
    /// It has room for more.
    open: watch::Sender<bool>,
    /// The number of pieces it received.
    received: watch::Sender<usize>,
}

#[derive(Debug, Default)]
struct Seen {
    text: String,
    crowded: bool,
}

impl Reader {
    fn new(open: bool) -> Arc<Self> {
        Arc::new(Self {
            seen: Mutex::default(),
            open: watch::Sender::new(open),
            received: watch::Sender::new(0),
        })
    }

    fn text(&self) -> String {
        self.seen.lock().unwrap().text.clone()
    }
}

impl Follower for Reader {
    fn printed(&self, text: &str) {
        let mut seen = self.seen.lock().unwrap();
        seen.text.push_str(text);
        seen.crowded |= !*self.open.borrow() && *self.received.borrow() > 0;
        self.received.send_modify(|times| *times += 1);
    }

    fn has_room(&self) -> bool {
        *self.open.borrow()
    }

    fn room(&self) -> BoxFuture<'_, ()> {
        let mut open = self.open.subscribe();
        Box::pin(async move {
            let _ = open.wait_for(|open| *open).await;
        })
    }
}

async fn follow(
    workspace: &Workspace,
    reader: &Arc<Reader>,
    mask: Mask,
    line: &str,
) -> BashOutcome {
    let settings = ToolSettings {
        mask,
        ..ToolSettings::default()
    };
    let follower = Arc::clone(reader) as Arc<dyn Follower>;
    user_bash(
        line,
        workspace.path(),
        &settings,
        Some(follower),
        &workspace.cancel,
    )
    .await
    .unwrap()
}

#[tokio::test]
async fn the_follower_receives_all_output_although_the_answer_has_only_the_end() {
    let workspace = Workspace::new(&[]);
    let reader = Reader::new(true);
    let outcome = follow(&workspace, &reader, Mask::default(), "seq 1 5000").await;
    let all: String = (1..=5000).map(|n| format!("{n}\n")).collect();
    assert_eq!(reader.text(), all);
    assert!(outcome.truncated && all.ends_with(&outcome.output));
    std::fs::remove_file(outcome.full_output_path.unwrap()).unwrap();
}

#[tokio::test]
async fn followed_output_is_as_clean_as_the_answer() {
    let workspace = Workspace::new(&[]);
    let mask = Mask::default();
    mask.learn(&Secret::from("sk-secret-key".to_owned()));
    let reader = Reader::new(true);
    let line = "printf '\\033[31mred\\r\\n\\0'; printf 'sk-sec'; sleep 0.1; printf 'ret-key, '; \
                printf 'sk-\\033[0msecret-key, sk-s'";
    let outcome = follow(&workspace, &reader, mask, line).await;
    assert_eq!(reader.text(), "red\n***, ***, sk-s");
    assert_eq!(outcome.output, "red\n***, sk-secret-key, sk-s");
}

#[tokio::test]
async fn a_follower_without_room_holds_the_command_up() {
    let workspace = Workspace::new(&[]);
    let reader = Reader::new(false);
    let line = "head -c 3000000 /dev/zero | tr '\\0' x";
    let run = follow(&workspace, &reader, Mask::default(), line);
    let release = async {
        let mut received = reader.received.subscribe();
        received.wait_for(|times| *times > 0).await.unwrap();
        // Enough time for more output to arrive.
        for _ in 0..1000 {
            tokio::task::yield_now().await;
        }
        let crowded = reader.seen.lock().unwrap().crowded;
        reader.open.send_replace(true);
        crowded
    };
    let (outcome, crowded) = tokio::join!(run, release);
    assert!(!crowded, "something came although there was no room");
    assert_eq!(reader.text().len(), 3_000_000);
    assert_eq!(outcome.exit_code, Some(0));
    std::fs::remove_file(outcome.full_output_path.unwrap()).unwrap();
}

#[tokio::test]
async fn a_command_that_is_held_up_can_be_cancelled() {
    let workspace = Workspace::new(&[]);
    let reader = Reader::new(false);
    let run = follow(&workspace, &reader, Mask::default(), "yes");
    let cancel = async {
        let mut received = reader.received.subscribe();
        received.wait_for(|times| *times > 0).await.unwrap();
        workspace.cancel.cancel();
    };
    let (outcome, ()) = tokio::join!(run, cancel);
    assert!(outcome.cancelled);
    if let Some(path) = outcome.full_output_path {
        std::fs::remove_file(path).unwrap();
    }
}
