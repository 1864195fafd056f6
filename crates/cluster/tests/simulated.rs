//! Conversations over a simulated bus that loses, delays, doubles and holds messages, with a paused clock. Every run is
//! decided by a seed, which a failure names.
//!
//! The checker is that of the real cluster: every call ends once and its identifier is recorded by the clip before it
//! answers, so `ok` must be recorded once, `not-started` never and `unknown` at most once, and never late.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking"
)]

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, stream};
use pinion_cluster::bus::Ended;
use pinion_cluster::members::{BEAT_INTERVAL, Members};
use pinion_cluster::names::{ClusterName, ProcessId};
use pinion_cluster::talk::{Answerer, Decision, Link, NewCall, Opening, Outcome, Talk};
use pinion_hub::{Answers, Input, InputPart};
use pinion_proto::cluster::{Beat, Caller, Invoke, open};
use tokio::time::Instant;

const HUBS: usize = 3;
const CALLS: usize = 60;
/// The longest time after the end of a call at which a clip may still receive it, if its opening has the whole input.
const LATE: Duration = Duration::from_millis(2_500);

/// Numbers that a seed decides.
#[derive(Debug, Clone)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, most: u64) -> u64 {
        self.next() % most
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// The faults that the bus makes now.
#[derive(Debug, Clone, Copy, Default)]
struct Faults {
    /// Messages lost, in percent.
    lost: u64,
    doubled: u64,
    /// The longest delay, in milliseconds.
    delay: u64,
}

#[derive(Debug)]
struct Bus {
    random: Mutex<Random>,
    faults: Mutex<Faults>,
    talks: Mutex<HashMap<String, Arc<Talk>>>,
    /// Hubs whose messages are held in both directions until this time, and hubs without a connection.
    held: Mutex<HashMap<String, Instant>>,
    cut: Mutex<HashMap<String, bool>>,
    /// The time before which no later message of a pair is delivered: pairs have an order.
    order: Mutex<HashMap<(String, String), Instant>>,
}

#[derive(Debug)]
struct SimLink {
    from: String,
    bus: Arc<Bus>,
}

impl Link for SimLink {
    fn send(
        &self,
        subject: String,
        reply: Option<String>,
        payload: Bytes,
    ) -> BoxFuture<'_, Result<(), Ended>> {
        let result = if *self
            .bus
            .cut
            .lock()
            .unwrap()
            .get(&self.from)
            .unwrap_or(&false)
        {
            Err(Ended)
        } else {
            self.bus.deliver(&self.from, &subject, reply, payload);
            Ok(())
        };
        async move { result }.boxed()
    }
}

impl Bus {
    fn deliver(self: &Arc<Self>, from: &str, subject: &str, reply: Option<String>, payload: Bytes) {
        let rest = subject.strip_prefix("pn.pinion.hub.").unwrap();
        let (to, rest) = rest.split_once('.').unwrap();
        let faults = *self.faults.lock().unwrap();
        let (is_lost, copies, delay) = {
            let mut random = self.random.lock().unwrap();
            let is_lost = random.chance(faults.lost);
            let copies = if random.chance(faults.doubled) { 2 } else { 1 };
            (is_lost, copies, random.below(faults.delay + 1))
        };
        if is_lost {
            return;
        }
        let now = Instant::now();
        let mut at = now + Duration::from_millis(delay);
        for hub in [from, to] {
            if let Some(until) = self.held.lock().unwrap().get(hub) {
                at = at.max(*until);
            }
        }
        {
            let mut order = self.order.lock().unwrap();
            let last = order.entry((from.to_owned(), to.to_owned())).or_insert(now);
            at = at.max(*last);
            *last = at;
        }
        for _ in 0..copies {
            let (bus, to, rest) = (self.clone(), to.to_owned(), rest.to_owned());
            let (reply, payload, from) = (reply.clone(), payload.clone(), from.to_owned());
            tokio::spawn(async move {
                tokio::time::sleep_until(at).await;
                let is_cut = |hub: &str| *bus.cut.lock().unwrap().get(hub).unwrap_or(&false);
                if is_cut(&to) {
                    // Nothing listens there. A copy proves nothing about the other.
                    if copies > 1 {
                        return;
                    }
                    let own = format!("pn.pinion.hub.{from}.");
                    let rest = reply.as_deref().and_then(|reply| reply.strip_prefix(&own));
                    if let Some(rest) = rest.filter(|_| !is_cut(&from)) {
                        let talk = bus.talks.lock().unwrap()[&from].clone();
                        talk.receive(rest, None, Bytes::new(), true);
                    }
                    return;
                }
                let talk = bus.talks.lock().unwrap()[&to].clone();
                talk.receive(&rest, reply.as_deref(), payload, false);
            });
        }
    }
}

/// A clip that records the calls it receives.
#[derive(Debug)]
struct Recorder {
    random: Mutex<Random>,
    begun: Arc<Mutex<Vec<(String, Instant)>>>,
}

impl Answerer for Recorder {
    fn answer(&self, opening: Opening, input: Option<Input>) -> BoxFuture<'_, Decision> {
        let id = String::from_utf8_lossy(&opening.body[..8.min(opening.body.len())]).into_owned();
        let size = opening.body.len();
        let (kind, wait) = {
            let mut random = self.random.lock().unwrap();
            (random.below(10), Duration::from_millis(random.below(9_000)))
        };
        self.begun.lock().unwrap().push((id, Instant::now()));
        let answers: Answers = match (kind, input) {
            (_, Some(mut input)) => Box::pin(stream::once(async move {
                let mut total = 0;
                while let Some(part) = input.next().await {
                    total += part.map_err(pinion_clip::CallError::Unanswered)?.data.len();
                }
                Ok(Bytes::from((size + total).to_string()))
            })),
            (0..=4, None) => Box::pin(stream::once(
                async move { Ok(Bytes::from(size.to_string())) },
            )),
            (5..=6, None) => Box::pin(stream::once(async move {
                // A slow clip, on the paused clock.
                tokio::time::sleep(wait).await;
                Ok(Bytes::from(size.to_string()))
            })),
            (7, None) => Box::pin(stream::pending()),
            _ => {
                // Numbers, of which none may be missing.
                let parts = (0..300_u32).map(|number| Ok(Bytes::from(vec![number as u8; 900])));
                Box::pin(stream::iter(parts).chain(stream::once(async move {
                    Ok(Bytes::from(size.to_string()))
                })))
            }
        };
        async move { Decision::Answer(answers) }.boxed()
    }
}

struct SimHub {
    id: ProcessId,
    talk: Arc<Talk>,
    members: Arc<Mutex<Members>>,
    skew: i64,
}

/// The end of a call as its caller saw it.
#[derive(Debug)]
struct Ending {
    id: String,
    /// The whole input was in the opening. A longer one follows in parts, which may be on their way when the call ends.
    is_one_message: bool,
    at: Instant,
    outcome: Option<Outcome>,
}

fn now_of(start: Instant, skew: i64) -> i64 {
    1_000_000 + skew + i64::try_from(start.elapsed().as_millis()).unwrap()
}

async fn campaign(seed: u64) {
    let mut random = Random(seed * 2 + 1);
    for _ in 0..8 {
        random.next();
    }
    let start = Instant::now();
    let bus = Arc::new(Bus {
        random: Mutex::new(Random(random.next() | 1)),
        faults: Mutex::default(),
        talks: Mutex::default(),
        held: Mutex::default(),
        cut: Mutex::default(),
        order: Mutex::default(),
    });
    let begun: Arc<Mutex<Vec<(String, Instant)>>> = Arc::default();
    let hubs: Vec<Arc<SimHub>> = (0..HUBS)
        .map(|at| {
            let id = ProcessId::parse(&format!("h{:016x}", at + 1)).unwrap();
            let members = Arc::new(Mutex::new(Members::default()));
            let skew = (random.below(60_001)) as i64 - 30_000;
            let clock = Arc::new(move || now_of(start, skew));
            let talk = Talk::new(id.clone(), ClusterName::default(), members.clone(), clock);
            talk.set_answerer(Arc::new(Recorder {
                random: Mutex::new(Random(random.next() | 1)),
                begun: begun.clone(),
            }));
            let from = id.as_str().to_owned();
            bus.talks.lock().unwrap().insert(from.clone(), talk.clone());
            let link = SimLink {
                from,
                bus: bus.clone(),
            };
            talk.begin_epoch(1, Arc::new(link));
            Arc::new(SimHub {
                id,
                talk,
                members,
                skew,
            })
        })
        .collect();
    let beating = tokio::spawn(beat(bus.clone(), hubs.clone(), start));
    // The first beats, on the paused clock.
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let endings: Arc<Mutex<Vec<Ending>>> = Arc::default();
    let mut calls = Vec::new();
    for number in 0..CALLS {
        if random.chance(20) {
            *bus.faults.lock().unwrap() = Faults {
                lost: random.below(3) * 5,
                doubled: random.below(3) * 10,
                delay: [0, 5, 300, 4_000][random.below(4) as usize],
            };
        }
        let hub = hubs[random.below(HUBS as u64) as usize]
            .id
            .as_str()
            .to_owned();
        if random.chance(10) {
            let until = Instant::now() + Duration::from_millis(random.below(8_000));
            bus.held.lock().unwrap().insert(hub, until);
        } else if random.chance(10) {
            let is_cut = random.chance(50);
            bus.cut.lock().unwrap().insert(hub.clone(), is_cut);
            let talk = bus.talks.lock().unwrap()[&hub].clone();
            talk.end_epoch();
            if !is_cut {
                let link = SimLink {
                    from: hub,
                    bus: bus.clone(),
                };
                talk.begin_epoch(number as i64 + 2, Arc::new(link));
            }
        }
        let from = hubs[random.below(HUBS as u64) as usize].clone();
        let to = hubs[random.below(HUBS as u64) as usize].id.clone();
        let size = [8, 100, 64 * 1024 + 1, 700_000][random.below(4) as usize];
        let parts = if random.chance(20) {
            random.below(40)
        } else {
            0
        };
        let patience = Duration::from_millis(500 + random.below(15_000));
        let call = one_call(
            from,
            to,
            format!("{number:08}"),
            size,
            parts,
            patience,
            endings.clone(),
        );
        calls.push(tokio::spawn(call));
        tokio::time::sleep(Duration::from_millis(random.below(700))).await;
    }
    for call in calls {
        call.await
            .unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
    *bus.faults.lock().unwrap() = Faults::default();
    // Whatever is still under way arrives, on the paused clock.
    tokio::time::sleep(Duration::from_secs(30)).await;
    beating.abort();
    check(seed, &endings.lock().unwrap(), &begun.lock().unwrap());
    for hub in &hubs {
        // What is left belongs to clips whose callers were lost; nothing remains once the epoch ends.
        hub.talk.end_epoch();
    }
    // The conversations notice it, on the paused clock.
    tokio::time::sleep(Duration::from_secs(30)).await;
    for hub in &hubs {
        assert_eq!(hub.talk.open_count(), 0, "seed {seed}: conversations leak");
    }
}

async fn beat(bus: Arc<Bus>, hubs: Vec<Arc<SimHub>>, start: Instant) {
    let mut last = Instant::now();
    loop {
        for from in &hubs {
            let is_cut =
                |id: &ProcessId| *bus.cut.lock().unwrap().get(id.as_str()).unwrap_or(&false);
            let is_held = |id: &ProcessId| {
                let held = bus.held.lock().unwrap();
                held.get(id.as_str())
                    .is_some_and(|until| *until > Instant::now())
            };
            let beat = Beat {
                id: from.id.as_str().to_owned().into(),
                epoch: 1,
                now_unix_ms: now_of(start, from.skew),
                ..Beat::default()
            };
            for to in &hubs {
                let is_stopped =
                    is_cut(&from.id) || is_cut(&to.id) || is_held(&from.id) || is_held(&to.id);
                if !is_stopped {
                    let now = now_of(start, to.skew);
                    to.members.lock().unwrap().hear(&beat, Instant::now(), now);
                }
            }
        }
        for _ in 0..4 {
            tokio::time::sleep(BEAT_INTERVAL / 4).await;
            let now = Instant::now();
            for hub in &hubs {
                let losses = hub.members.lock().unwrap().sweep(last, now);
                for loss in losses {
                    hub.talk.lose(&loss);
                }
            }
            last = now;
        }
    }
}

async fn one_call(
    from: Arc<SimHub>,
    to: ProcessId,
    id: String,
    size: usize,
    parts: u64,
    patience: Duration,
    endings: Arc<Mutex<Vec<Ending>>>,
) {
    let mut body = id.clone().into_bytes();
    body.resize(size, b'x');
    let new = NewCall {
        alias: "todo".into(),
        caller: Caller::default(),
        secret: String::new(),
        what: open::What::Invoke(Invoke::default()),
        body: body.into(),
        deadline: None,
        patience: None,
        more_input: parts > 0,
    };
    let total = size + 30_000 * parts as usize;
    let calling = async {
        let mut call = match from.talk.open(&to, &new).await {
            Ok(call) => call,
            Err(refused) => return Some(refused.outcome),
        };
        let more = (parts > 0).then(|| {
            let parts = (0..parts).map(|_| Ok(InputPart::new(vec![1; 30_000].into(), false)));
            let more: Input = Box::pin(stream::iter(parts));
            more
        });
        call.feed(&new.body, more);
        let mut next = 0_u32;
        let mut last = Bytes::new();
        while let Some(part) = call.next().await {
            match part {
                Ok(part) => {
                    if part.len() == 900 {
                        assert_eq!(part[0], next as u8, "{id}: a part is missing");
                        next += 1;
                    }
                    last = part;
                }
                Err(failed) => {
                    let detail = failed.failure.details.first();
                    let outcome = detail.map(|detail| detail.value.as_slice().to_vec());
                    return Some(match outcome.as_deref() {
                        Some(b"not-started") => Outcome::NotStarted,
                        _ => Outcome::Unknown,
                    });
                }
            }
        }
        assert!(next == 0 || next == 300, "{id}: {next} parts");
        assert_eq!(last, Bytes::from(total.to_string()), "{id}");
        None
    };
    let outcome = match tokio::time::timeout(patience, calling).await {
        Ok(outcome) => outcome,
        // The caller went away.
        Err(_) => Some(Outcome::Unknown),
    };
    let at = Instant::now();
    endings.lock().unwrap().push(Ending {
        id,
        is_one_message: size < 64 * 1024,
        at,
        outcome,
    });
}

fn check(seed: u64, endings: &[Ending], begun: &[(String, Instant)]) {
    assert_eq!(endings.len(), CALLS, "seed {seed}: a call has not ended");
    for ending in endings {
        let Ending {
            id, at, outcome, ..
        } = ending;
        let times: Vec<Instant> = begun
            .iter()
            .filter(|(other, _)| other == id)
            .map(|(_, at)| *at)
            .collect();
        match outcome {
            None => assert_eq!(times.len(), 1, "seed {seed}: call {id} was answered"),
            Some(Outcome::NotStarted) => {
                assert_eq!(times.len(), 0, "seed {seed}: call {id} was not started")
            }
            Some(Outcome::Unknown) => assert!(times.len() <= 1, "seed {seed}: call {id} ran twice"),
        }
        for time in times {
            assert!(
                !ending.is_one_message || time <= *at + LATE,
                "seed {seed}: call {id} began {:?} late",
                time - *at
            );
        }
    }
}

#[test]
fn calls_end_once_and_run_at_most_once_whatever_the_bus_does() {
    let rounds: u64 = std::env::var("PINION_TEST_ROUNDS")
        .ok()
        .and_then(|it| it.parse().ok())
        .unwrap_or(10);
    for seed in 1..=rounds * 10 {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(campaign(seed));
    }
}
