//! The state that both sides of a conversation share: numbers, credit, what has arrived and how it ended.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};

use bytes::{Bytes, BytesMut};
use pinion_proto::cluster::{Frame, Item, item::What};
use pinion_status::{Code, Failure};
use pinion_sync::lock;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::flow::{Amount, FlowError, Inflow, Outflow};
use crate::names::ProcessId;

/// The largest part, which the hub's own limit of messages fits into.
const MAX_PART: usize = 48 << 20;

#[derive(Debug)]
pub(super) struct Conversation {
    pub number: u64,
    pub peer: ProcessId,
    state: Mutex<State>,
    /// Notified when something has arrived or the conversation has ended.
    pub arrived: Notify,
    /// Notified when there may be room for another part or the conversation has ended.
    pub room: Notify,
}

#[derive(Debug)]
pub(super) struct State {
    /// The peer's number of the conversation, once it is known.
    pub peer_number: Option<u64>,
    pub out: Outflow,
    pub inflow: Inflow,
    pub inbox: VecDeque<Arrived>,
    /// The beginning of a part that continues.
    partial: BytesMut,
    /// The clip has the call.
    pub accepted: bool,
    pub end: Option<End>,
    pub last_heard: Instant,
    /// The peer's answer to the last ping.
    pub pong: Option<Pong>,
}

/// A complete part, or the end of an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Arrived {
    /// The bytes and the size of the frame that carried its end, which counts as unread.
    Part(Bytes, usize),
    InputEnd,
}

/// The end of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum End {
    /// The answer is complete.
    Complete,
    Failed {
        failure: Failure,
        answered: bool,
    },
    /// The opening was not handed to a clip.
    Refused {
        reason: String,
        revision: u64,
        failure: Failure,
    },
    /// The servers report that nothing listens on the subject.
    NoListener,
    /// The peer or the connection is lost.
    Lost(&'static str),
    /// The caller has gone.
    Cancelled,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pong {
    pub known: bool,
    pub last_seq: u64,
}

/// Messages that a frame demands in return.
#[derive(Debug, Default)]
pub(super) struct Replies {
    pub items: Vec<What>,
}

pub(super) const GAP: &str = "a part of the answer was lost between hubs";
pub(super) const OVERRUN: &str = "another hub has sent more than it may";

impl Conversation {
    pub fn new(number: u64, peer: ProcessId, peer_number: Option<u64>, window: Amount) -> Self {
        Self {
            number,
            peer,
            state: Mutex::new(State {
                peer_number,
                out: Outflow::default(),
                inflow: Inflow::new(window),
                inbox: VecDeque::new(),
                partial: BytesMut::new(),
                accepted: false,
                end: None,
                last_heard: Instant::now(),
                pong: None,
            }),
            arrived: Notify::new(),
            room: Notify::new(),
        }
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Ends the conversation, if it has not ended.
    pub fn end(&self, end: End) {
        self.state().end.get_or_insert(end);
        self.arrived.notify_waiters();
        self.room.notify_waiters();
    }

    /// Applies a frame of the peer. Returns what must be sent back.
    pub fn receive(&self, frame: Frame) -> Replies {
        let mut state = self.state();
        state.last_heard = Instant::now();
        let mut replies = Replies::default();
        let seq = u64::try_from(frame.seq).unwrap_or(0);
        let received = state
            .inflow
            .accept(seq)
            .and_then(|()| state.items(frame.items, &mut replies));
        if let Err(error) = received {
            let why = match error {
                FlowError::Gap => GAP,
                FlowError::Overrun => OVERRUN,
            };
            state.end.get_or_insert(End::Lost(why));
            replies.items.push(cancel());
        }
        drop(state);
        self.arrived.notify_waiters();
        self.room.notify_waiters();
        replies
    }
}

pub(super) fn cancel() -> What {
    What::Cancel(pinion_proto::cluster::Cancel {
        code: Code::Canceled.as_str().into(),
    })
}

impl State {
    fn items(&mut self, items: Vec<Item>, replies: &mut Replies) -> Result<(), FlowError> {
        for what in items.into_iter().filter_map(|item| item.what) {
            match what {
                What::Accepted(accepted) => {
                    self.accepted = true;
                    self.peer_number = u64::try_from(accepted.conv).ok();
                    self.grant(accepted.credit.as_ref());
                }
                What::Part(part) => {
                    let size = part.data.len();
                    self.inflow.received_part(size)?;
                    if part.more || !self.partial.is_empty() {
                        if self.partial.len() + size > MAX_PART {
                            return Err(FlowError::Overrun);
                        }
                        self.partial.extend_from_slice(&part.data);
                    }
                    if part.more {
                        // The whole part has to be in memory before it can be read, so there must be room for its rest.
                        let credit = self.inflow.read_part(size);
                        replies
                            .items
                            .extend(credit.map(|credit| What::Credit(credit.credit())));
                    } else if self.partial.is_empty() {
                        self.inbox.push_back(Arrived::Part(part.data, size));
                    } else {
                        let whole = self.partial.split().freeze();
                        self.inbox.push_back(Arrived::Part(whole, size));
                    }
                }
                What::Credit(credit) => self.grant(Some(&credit)),
                What::InputEnd(_) => self.inbox.push_back(Arrived::InputEnd),
                What::End(end) => {
                    let ended = if end.code.is_empty() {
                        End::Complete
                    } else {
                        End::Failed {
                            failure: Failure::new(Code::parse(&end.code), end.message.to_string()),
                            answered: end.answered,
                        }
                    };
                    self.end.get_or_insert(ended);
                }
                What::Refused(refused) => {
                    let refused = End::Refused {
                        reason: refused.reason.to_string(),
                        revision: u64::try_from(refused.revision).unwrap_or(0),
                        failure: Failure::new(
                            Code::parse(&refused.code),
                            refused.message.to_string(),
                        ),
                    };
                    self.end.get_or_insert(refused);
                }
                What::Cancel(_) => {
                    self.end.get_or_insert(End::Cancelled);
                }
                What::Ping(ping) => {
                    self.grant(ping.credit.as_ref());
                    replies.items.push(What::Pong(pinion_proto::cluster::Pong {
                        known: true,
                        last_seq: i64::try_from(self.out.seq).unwrap_or(i64::MAX),
                        credit: Some(self.inflow.credit().credit()),
                    }));
                }
                What::Pong(pong) => {
                    self.grant(pong.credit.as_ref());
                    self.pong = Some(Pong {
                        known: pong.known,
                        last_seq: u64::try_from(pong.last_seq).unwrap_or(0),
                    });
                }
            }
        }
        Ok(())
    }

    fn grant(&mut self, credit: Option<&pinion_proto::cluster::Credit>) {
        if let Some(credit) = credit {
            self.out.grant(Amount::of(credit));
        }
    }
}
