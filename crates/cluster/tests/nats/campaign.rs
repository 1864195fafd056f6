//! Callers at every hub while servers and hubs are killed and paused. The checker reads the history afterwards: every
//! call has ended, `ok` ran once, `not-started` never, `unknown` at most once, and nothing began late.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::{Duration, Instant};

use pinion_access::Principal;
use pinion_hub::{DeadlineOrigin, HubCall};
use pinion_testkit::NatsServers;

use crate::hubs::{Member, TestClip, outcome};

/// Seconds of faults for each round of `PINION_TEST_ROUNDS`, and without it.
const SECONDS_PER_ROUND: u64 = 1;
const SECONDS: u64 = 30;
const CALLERS: usize = 4;
const LATE: Duration = Duration::from_millis(2_500);
/// The time after which a call that has not ended counts as hanging.
const HANG: Duration = Duration::from_secs(60);

#[derive(Debug)]
struct Entry {
    id: String,
    ended: Instant,
    /// `ok`, `not-started` or `unknown`.
    outcome: String,
}

struct Stage {
    servers: Mutex<NatsServers>,
    hubs: Vec<RwLock<Option<Member>>>,
    clips: Vec<Arc<TestClip>>,
    urls: Vec<String>,
}

impl Stage {
    fn start_hub(&self, at: usize) {
        let name = format!("hub{at}");
        let until = Instant::now() + HANG;
        let member = loop {
            match Member::start_with(&self.urls[at], &name, self.clips[at].clone()) {
                Ok(member) => break member,
                Err(failure) => assert!(Instant::now() < until, "{name}: {failure}"),
            }
        };
        member.offer(&format!("clip{at}"));
        *self.hubs[at].write().unwrap() = Some(member);
    }
}

fn call(stage: &Stage, from: usize, to: usize, id: &str, history: &Mutex<Vec<Entry>>) {
    let hub = {
        let member = stage.hubs[from].read().unwrap();
        let Some(member) = member.as_ref() else {
            return;
        };
        (member.hub.clone(), member.handle())
    };
    let (hub, runtime) = hub;
    let alias = format!("clip{to}");
    let id_of_call = id.to_owned();
    let (ended, end) = std::sync::mpsc::sync_channel(1);
    runtime.spawn(async move {
        let mut call = HubCall::new(Principal::Super, "note", id_of_call);
        call.deadline = Some(tokio::time::Instant::now() + Duration::from_secs(8));
        call.deadline_origin = DeadlineOrigin::Caller;
        let _ = ended.send(hub.ask(&alias, call).await);
    });
    let outcome = match end.recv_timeout(HANG) {
        Ok(Ok(_)) => "ok".to_owned(),
        Ok(Err(failure)) => match outcome(&failure) {
            // The call did not leave its hub.
            "" => "not-started".to_owned(),
            known => known.to_owned(),
        },
        // The caller's hub was killed, and its callers with it.
        Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => "unknown".to_owned(),
        Err(std::sync::mpsc::RecvTimeoutError::Timeout) => panic!("call {id} has not ended"),
    };
    history.lock().unwrap().push(Entry {
        id: id.to_owned(),
        ended: Instant::now(),
        outcome,
    });
}

#[test]
#[ignore = "needs nats-server"]
fn kills_and_pauses_break_no_promise() {
    let rounds = std::env::var("PINION_TEST_ROUNDS")
        .ok()
        .and_then(|it| it.parse::<u64>().ok());
    let seconds = rounds.map_or(SECONDS, |rounds| rounds * SECONDS_PER_ROUND);
    let servers = NatsServers::three();
    // Each hub begins at another server and knows all of them.
    let urls = (0..3)
        .map(|at| {
            let order = [at, (at + 1) % 3, (at + 2) % 3];
            order.map(|at| servers.url(at)).join(",")
        })
        .collect();
    let stage = Stage {
        servers: Mutex::new(servers),
        hubs: (0..3).map(|_| RwLock::new(None)).collect(),
        clips: (0..3).map(|_| Arc::default()).collect(),
        urls,
    };
    for at in 0..3 {
        stage.start_hub(at);
    }
    let history: Mutex<Vec<Entry>> = Mutex::default();
    let (is_over, next) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for from in 0..3 {
            for _ in 0..CALLERS {
                scope.spawn({
                    let (stage, history, is_over, next) = (&stage, &history, &is_over, &next);
                    move || {
                        while !is_over.load(Ordering::Relaxed) {
                            let number = next.fetch_add(1, Ordering::Relaxed);
                            let to = (from + 1 + usize::try_from(number % 2).unwrap()) % 3;
                            call(stage, from, to, &format!("op{number}"), history);
                            std::thread::sleep(Duration::from_millis(3));
                        }
                    }
                });
            }
        }
        let begun = Instant::now();
        let mut step = 0;
        while begun.elapsed() < Duration::from_secs(seconds) {
            fault(&stage, step);
            step += 1;
        }
        is_over.store(true, Ordering::Relaxed);
    });
    // Whatever lay somewhere arrives, or is refused for its age.
    std::thread::sleep(LATE);
    check(&history.into_inner().unwrap(), &stage.clips);
}

/// Makes one fault and repairs it.
fn fault(stage: &Stage, step: usize) {
    let at = step % 3;
    // Each fault lasts for a while.
    let pause = |time: u64| std::thread::sleep(Duration::from_millis(time));
    match step % 5 {
        0 => {
            stage.servers.lock().unwrap().kill(at);
            pause(1_500);
            let mut servers = stage.servers.lock().unwrap();
            servers.restart(at);
            servers.wait_until_ready(at);
        }
        1 => {
            if let Some(member) = stage.hubs[at].write().unwrap().take() {
                member.crash();
            }
            pause(300);
            stage.start_hub(at);
        }
        2 => {
            stage.servers.lock().unwrap().stop(at);
            pause(3_500);
            stage.servers.lock().unwrap().go_on(at);
        }
        3 => {
            if let Some(member) = stage.hubs[at].write().unwrap().take() {
                member.leave();
            }
            stage.start_hub(at);
        }
        _ => pause(1_000),
    }
}

fn check(history: &[Entry], clips: &[Arc<TestClip>]) {
    let mut begun: std::collections::HashMap<String, Vec<Instant>> =
        std::collections::HashMap::new();
    for clip in clips {
        for (id, at) in clip.times.lock().unwrap().iter() {
            begun.entry(id.clone()).or_default().push(*at);
        }
    }
    let mut counts = std::collections::BTreeMap::new();
    for Entry { id, ended, outcome } in history {
        *counts.entry(outcome.as_str()).or_insert(0) += 1;
        let times = begun.remove(id).unwrap_or_default();
        match outcome.as_str() {
            "ok" => assert_eq!(times.len(), 1, "{id} was answered"),
            "not-started" => assert_eq!(times.len(), 0, "{id} was not started"),
            _ => assert!(times.len() <= 1, "{id} ran {} times", times.len()),
        }
        for at in times {
            assert!(at <= *ended + LATE, "{id} began {:?} late", at - *ended);
        }
    }
    assert!(begun.is_empty(), "calls without an end: {begun:?}");
    assert!(counts["ok"] > 100, "{counts:?}");
}
