//! Print mode and json mode: prompts in, one answer out.

use std::sync::{Arc, Mutex, PoisonError};

use pinion_agent::{
    Answer, Command, Disposition, EngineError, Event, Handle, Listener, Prompt, Reply,
};
use pinion_message::{Block, Message};
use tokio::sync::{oneshot, watch};

/// What is said to the agent, in order.
#[derive(Debug, Default)]
pub struct Prompts {
    /// Texts; the first one carries the images.
    pub texts: Vec<String>,
    /// Images that go with the first text.
    pub images: Vec<Block>,
}

/// Remembers the last answer and tells when the session has settled.
#[derive(Debug)]
pub struct PrintListener {
    last: Mutex<Option<Arc<Message>>>,
    /// The number of times that the session has settled.
    settled: watch::Sender<usize>,
}

/// Reports each time that a session has settled. A count, so that it takes no memory while nobody looks.
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
    /// A listener, and the side that learns when the session has settled.
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

    /// The last answer.
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

/// Says everything in order, each when the one before has settled; how many the model was asked.
pub async fn ask_all(
    session: &Handle,
    prompts: Prompts,
    settled: &mut Settled,
) -> Result<usize, EngineError> {
    let mut asked = 0;
    let mut images = prompts.images;
    for text in prompts.texts {
        let prompt = Command::Prompt(Prompt {
            images: std::mem::take(&mut images),
            ..Prompt::new(text)
        });
        let answer = ask(session, prompt).await?;
        if matches!(answer, Answer::Taken(Disposition::Handled)) {
            // Whoever dealt with it may have started something.
            ask(session, Command::WaitForIdle).await?;
            asked += settled.take();
            continue;
        }
        asked += 1;
        if settled.next().await.is_none() {
            return Err(EngineError::Dropped);
        }
    }
    Ok(asked)
}

async fn ask(session: &Handle, command: Command) -> Result<Answer, EngineError> {
    let (sender, answer) = oneshot::channel();
    // The asker is waiting right below.
    let reply = Reply::new(move |result| drop(sender.send(result)));
    session.send(command, reply).await;
    answer.await.unwrap_or(Err(EngineError::Dropped))
}
