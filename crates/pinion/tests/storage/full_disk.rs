//! A disk without room: a clear event, a session that continues in memory, and a file that still opens.

use std::fs;

use pinion_testkit::Exit;
use pinion_testkit::fault::disk::SmallDisk;
use pinion_testkit::fault::limits::{Limit, limited};
use serde_json::{Value, json};

use crate::support::{Client, args, check_runs, offline_sandbox, pinion, script};

const ARGUMENTS: [&str; 4] = ["--mode", "rpc", "--model", "offline/demo"];

/// Checks that every line of the session files is a whole record.
fn whole(client: &Client) -> usize {
    let mut count = 0;
    for (name, path) in client.sandbox.session_files() {
        let text = fs::read_to_string(path).unwrap();
        assert!(
            text.is_empty() || text.ends_with('\n'),
            "{name} ends in the middle of a record"
        );
        for line in text.lines() {
            serde_json::from_str::<Value>(line).unwrap_or_else(|error| panic!("{name}: {error}"));
            count += 1;
        }
    }
    count
}

fn talk(client: &mut Client, rounds: usize) {
    for round in 0..rounds {
        let from = client.prompt(&script(&json!({"deltas": 60, "size": 20})));
        let messages = client.wait_end(from);
        assert_eq!(messages[1]["stopReason"], "stop", "round {round}");
    }
}

fn told(client: &Client) -> Vec<Value> {
    let faults = client
        .lines()
        .into_iter()
        .filter(|line| line["type"] == "extension_error");
    faults
        .filter(|line| {
            line["error"]
                .as_str()
                .is_some_and(|error| error.contains("could not save"))
        })
        .collect()
}

#[test]
fn d5_a_file_that_may_not_grow_is_told_and_still_opens() {
    let sandbox = offline_sandbox(&json!({}));
    let program = limited(&pinion(), &[Limit::FileBlocks(12)]);
    let mut client = Client::around(program.start(&sandbox, &args(&ARGUMENTS)), sandbox);
    talk(&mut client, 6);
    assert_eq!(client.finish(), Exit::Code(0));
    assert_eq!(check_runs(&client.lines()), Ok(6));
    assert!(
        !told(&client).is_empty(),
        "nobody was told; {}",
        client.report(0)
    );
    assert!(whole(&client) > 2);
    let mut client = client.restart(&[&ARGUMENTS[..], &["--continue"]].concat());
    assert!(client.data("get_state")["messageCount"].as_u64().unwrap() >= 2);
    talk(&mut client, 1);
}

#[test]
fn d5_a_full_disk_is_told_and_what_waited_is_saved_when_there_is_room() {
    let sandbox = offline_sandbox(&json!({}));
    let sessions = sandbox.agent().join("sessions");
    fs::create_dir_all(&sessions).unwrap();
    let disk = match SmallDisk::mount(&sessions, 256 * 1024) {
        Ok(disk) => disk,
        Err(why) => {
            // The limit on file size above shows the same without being allowed to mount.
            println!("skipped: {why}");
            return;
        }
    };
    let mut client = Client::start(sandbox, &ARGUMENTS);
    talk(&mut client, 1);
    disk.fill();
    talk(&mut client, 3);
    assert!(
        !told(&client).is_empty(),
        "nobody was told; {}",
        client.report(0)
    );
    let before = whole(&client);
    disk.empty();
    talk(&mut client, 1);
    assert_eq!(client.finish(), Exit::Code(0));
    assert!(whole(&client) > before);
    let mut client = client.restart(&[&ARGUMENTS[..], &["--continue"]].concat());
    assert_eq!(client.data("get_state")["messageCount"], 10);
    client.finish();
    // The disk goes before the directory it is mounted in.
    let Client {
        process, sandbox, ..
    } = client;
    drop(process);
    drop(disk);
    drop(sandbox);
}
