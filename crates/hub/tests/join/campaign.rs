//! Providers that are cut off two hundred times at random during calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use pinion_access::Mode;
use serde_json::json;

use super::common::{self, Running};
use super::stage::{Echo, Proxy, Shelf, decoded, eventually, join_from, options, until_joined};

const KILLS: usize = 200;
const CALLERS: usize = 8;
const PROVIDERS: usize = 4;

#[test]
fn no_answer_is_lost_or_doubled_and_every_call_ends() {
    let hub = Running::start(Mode::Secured);
    let echoes: Vec<Arc<Echo>> = (0..PROVIDERS).map(|_| Echo::new("1")).collect();
    let proxies: Vec<Proxy> = (0..PROVIDERS).map(|_| Proxy::to(hub.address)).collect();
    let joined: Vec<_> = (0..PROVIDERS)
        .map(|number| {
            let options = options(proxies[number].address, &hub.token, &format!("p{number}"));
            let shelf = Shelf::with(&format!("echo{number}"), echoes[number].clone());
            join_from(&hub, options, shelf)
        })
        .collect();
    joined.iter().for_each(until_joined);
    let over = Arc::new(AtomicBool::new(false));
    let (answered, failed) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let callers: Vec<_> = (0..CALLERS)
        .map(|caller| {
            let (address, token) = (hub.address, hub.token.clone());
            let (over, answered, failed) = (over.clone(), answered.clone(), failed.clone());
            std::thread::spawn(move || {
                for number in 0.. {
                    if over.load(Ordering::SeqCst) {
                        return;
                    }
                    let input = json!({"caller": caller, "number": number});
                    let clip = format!("echo{}", (caller + number) % PROVIDERS);
                    let body = json!({"clipName": clip, "command": "later", "input": input});
                    let (status, answer) =
                        common::post(address, &token, "Invoke", &[], &body.to_string());
                    match status {
                        200 => {
                            assert_eq!(decoded(&answer), input);
                            answered.fetch_add(1, Ordering::SeqCst);
                        }
                        503 => {
                            assert_eq!(answer["code"], "unavailable", "{answer}");
                            failed.fetch_add(1, Ordering::SeqCst);
                        }
                        _ => panic!("{status} {answer}"),
                    }
                }
            })
        })
        .collect();
    let mut seed = 7_u64;
    for _ in 0..KILLS {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let random = usize::try_from(seed >> 33).unwrap();
        proxies[random % PROVIDERS].cut();
        std::thread::sleep(Duration::from_millis(5 + (random / 7 % 30) as u64));
    }
    // On a busy machine few calls fit between the cuts; the rest are answered after the last one.
    let enough = || answered.load(Ordering::SeqCst) > 100 && failed.load(Ordering::SeqCst) > 0;
    eventually("enough calls", enough);
    over.store(true, Ordering::SeqCst);
    for caller in callers {
        caller.join().unwrap();
    }
    let mut seen = 0;
    for echo in &echoes {
        for (input, times) in &*echo.seen.lock().unwrap() {
            assert_eq!(*times, 1, "{input} was called more than once");
            seen += 1;
        }
    }
    assert!(seen >= answered.load(Ordering::SeqCst));
    // All of them reconnect.
    for number in 0..PROVIDERS {
        eventually("it is there again", || {
            let body = json!({"clipName": format!("echo{number}"), "command": "say", "input": {}});
            hub.call("Invoke", &body.to_string()).0 == 200
        });
    }
}
