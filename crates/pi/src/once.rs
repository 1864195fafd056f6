//! Print mode and json mode: prompts in, one answer out.

use std::sync::{Arc, Mutex, PoisonError};

use pinion_agent::{
    Answer, Command, Disposition, EngineError, Event, Handle, Listener, Prompt, Reply,
};
use pinion_message::{Block, Message};
use tokio::sync::{mpsc, oneshot};

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
    settled: mpsc::UnboundedSender<()>,
}

impl PrintListener {
    /// A listener, and where it tells that a prompt has settled.
    pub fn new() -> (Arc<Self>, mpsc::UnboundedReceiver<()>) {
        let (settled, receiver) = mpsc::unbounded_channel();
        (
            Arc::new(Self {
                last: Mutex::new(None),
                settled,
            }),
            receiver,
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
                // Nobody waits any more once the prompts are through.
                let _ = self.settled.send(());
            }
            _ => {}
        }
    }
}

/// Says everything in order, each when the one before has settled; how many the model was asked.
pub async fn ask_all(
    session: &Handle,
    prompts: Prompts,
    settled: &mut mpsc::UnboundedReceiver<()>,
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
            while settled.try_recv().is_ok() {
                asked += 1;
            }
            continue;
        }
        asked += 1;
        if settled.recv().await.is_none() {
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
