//! Print mode and json mode: run the given prompts and end.

use std::sync::{Arc, Mutex, PoisonError};

use pinion_agent::{
    Answer, Command, Disposition, EngineError, Event, Handle, Listener, Prompt, Reply,
};
use pinion_message::{Block, Message};
use tokio::sync::{oneshot, watch};

/// The prompts to run, in order.
#[derive(Debug, Default)]
pub struct Prompts {
    /// The texts of the prompts.
    pub texts: Vec<String>,
    /// Images of the first prompt.
    pub images: Vec<Block>,
}

/// Stores the last answer and reports when a prompt has ended.
#[derive(Debug)]
pub struct PrintListener {
    last: Mutex<Option<Arc<Message>>>,
    /// The number of times that the session has settled.
    settled: watch::Sender<usize>,
}

/// Reports each time that a session has settled. It is a count, so that it takes no memory while it is not read.
#[derive(Debug)]
pub struct Settled {
    count: watch::Receiver<usize>,
    seen: usize,
}

impl Settled {
    /// Waits until the session has settled once more; `None` when the session is gone.
    async fn next(&mut self) -> Option<()> {
        let seen = self.seen;
        self.count.wait_for(|&count| count > seen).await.ok()?;
        self.seen += 1;
        Some(())
    }

    /// Returns how often the session has settled since the last look.
    fn take(&mut self) -> usize {
        let count = *self.count.borrow();
        count - std::mem::replace(&mut self.seen, count)
    }
}

impl PrintListener {
    /// Creates a listener, and a receiver that counts the prompts that have ended.
    pub fn new() -> (Arc<Self>, Settled) {
        let (settled, count) = watch::channel(0);
        (
            Arc::new(Self {
                last: Mutex::new(None),
                settled,
            }),
            Settled { count, seen: 0 },
        )
    }

    /// Returns the last answer.
    pub fn last(&self) -> Option<Arc<Message>> {
        self.last
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl Listener for PrintListener {
    fn notice(&self, _ordinal: u64, event: &Event) {
        match event {
            Event::MessageEnd(message) if message.as_assistant().is_some() => {
                let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
                *last = Some(Arc::clone(message));
            }
            Event::Settled { .. } => {
                self.settled.send_modify(|count| *count += 1);
            }
            _ => {}
        }
    }
}

/// Runs the prompts in order, each after the previous one has ended. Returns the number of runs.
pub async fn ask_all(
    session: &Handle,
    prompts: Prompts,
    settled: &mut Settled,
) -> Result<usize, EngineError> {
    let mut runs = 0;
    let mut images = prompts.images;
    for text in prompts.texts {
        let prompt = Command::Prompt(Prompt {
            images: std::mem::take(&mut images),
            ..Prompt::new(text)
        });
        let answer = ask(session, prompt).await?;
        if matches!(answer, Answer::Taken(Disposition::Handled)) {
            // The hook that handled the prompt may have started a run.
            ask(session, Command::WaitForIdle).await?;
            runs += settled.take();
            continue;
        }
        runs += 1;
        if settled.next().await.is_none() {
            return Err(EngineError::Dropped);
        }
    }
    Ok(runs)
}

async fn ask(session: &Handle, command: Command) -> Result<Answer, EngineError> {
    let (sender, answer) = oneshot::channel();
    // The receiver is awaited right below.
    let reply = Reply::new(move |result| drop(sender.send(result)));
    session.send(command, reply).await;
    answer.await.unwrap_or(Err(EngineError::Dropped))
}
