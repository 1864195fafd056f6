//! Print mode and json mode: prompts in, one answer out.

use std::sync::{Arc, Mutex, PoisonError};

use pinion_agent::{Command, EngineError, Event, Handle, Listener, Origin, Reply};
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

/// Says everything in order, each when the one before has settled.
pub async fn ask_all(
    session: &Handle,
    prompts: Prompts,
    settled: &mut mpsc::UnboundedReceiver<()>,
) -> Result<(), EngineError> {
    let mut images = prompts.images;
    for text in prompts.texts {
        let (sender, answer) = oneshot::channel();
        let reply = Reply::new(move |result| {
            // The asker is waiting right below.
            let _ = sender.send(result);
        });
        let images = std::mem::take(&mut images);
        session
            .send(
                Command::Prompt {
                    text,
                    images,
                    when_busy: None,
                    origin: Origin::Client,
                },
                reply,
            )
            .await;
        answer.await.unwrap_or(Err(EngineError::Dropped))?;
        if settled.recv().await.is_none() {
            return Err(EngineError::Dropped);
        }
    }
    Ok(())
}
