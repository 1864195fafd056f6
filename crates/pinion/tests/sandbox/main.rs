//! Escape tests of the sandbox, through the binary: each probe is a confined process that attempts what the sandbox
//! promises to refuse, as the present user and, where that is root, as an ordinary one too.
//!
//! The test program is its own probe: `sandbox __probe NAME DIRECTORY` runs one attempt. With the feature `mutations`
//! the run is another one: a mechanism is disabled at a time, and the probes that it stops must succeed.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test")]

mod calls;
mod ground;
mod life;
mod probes;
mod records;
mod session;

use std::os::unix::net::UnixListener;
use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

use ground::{Ground, User};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, first, name, top] = arguments.as_slice()
        && first == "__probe"
    {
        return probes::run(name, top.as_ref());
    }
    let mut trials = Vec::new();
    if cfg!(feature = "mutations") {
        trials.extend(mutations());
    } else {
        for user in User::all() {
            for probe in probes::ALL {
                let name = format!("{}::{}", user.name(), probe.name);
                let trial = move || Ground::new(user).refuses(probe.name, &[], None);
                trials.push(Trial::test(name, move || Ok(trial()?)));
            }
            trials.extend(records::trials(user));
            trials.extend(life::trials(user));
            trials.extend(session::trials(user));
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// Each mechanism that can be disabled, and probes that succeed without it.
const MUTATIONS: &[(&str, &[&str])] = &[
    (
        "landlock",
        &["hidden_by_link", "hidden_by_proc", "signals", "tracing"],
    ),
    ("filter-refused", &["namespaces", "keys", "rings"]),
    ("filter-sockets", &["datagrams", "odd_sockets"]),
    ("filter-ioctl", &["terminal_input"]),
    ("filter-others", &["limits_of_others"]),
    (
        "writable",
        &[
            "write_by_link",
            "write_by_proc",
            "outside_names",
            "truncate_outside",
        ],
    ),
    (
        "protected",
        &[
            "git_hooks",
            "git_moved",
            "reserved_names",
            "reserved_by_rename",
        ],
    ),
    ("attributes", &["attributes_outside"]),
    ("connect", &["tcp_elsewhere"]),
    ("unix", &["unix_sockets"]),
    ("bind", &["server_of_everyone"]),
    ("link-source", &["hard_links"]),
];

fn mutations() -> Vec<Trial> {
    let mut trials = Vec::new();
    for &(mutation, caught) in MUTATIONS {
        for &probe in caught {
            let name = format!("without_{mutation}::{probe}");
            trials.push(Trial::test(name, move || {
                let ground = Ground::new(User::Present);
                // A server outside, which a probe without its mechanism reaches.
                let _server = UnixListener::bind(ground.path("outside/server"))?;
                match ground.refuses(probe, &[], Some(mutation)) {
                    Err(_) => Ok(()),
                    Ok(()) => Err(format!("{probe} passes without {mutation}").into()),
                }
            }));
        }
    }
    trials
}
