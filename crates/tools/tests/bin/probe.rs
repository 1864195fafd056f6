//! Runs one command under a guardian, prints a line, and waits for its stdin to end.
//!
//! It can be a guardian itself, like the real binary.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that cannot be set up should fail"
)]

use pinion_tools::{ShellOptions, ToolSettings, run_shell};
use tokio_util::sync::CancellationToken;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let command = arguments.next().unwrap();
    if command == pinion_process::GUARDIAN_ARGUMENT {
        pinion_process::guardian_main();
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let settings = ToolSettings::default();
        let cwd = std::env::current_dir().unwrap();
        let options = ShellOptions {
            cwd: &cwd,
            settings: &settings,
            timeout: None,
            follower: None,
        };
        println!("running");
        run_shell(&command, options, &CancellationToken::new(), |_| {})
            .await
            .unwrap();
    });
    println!("done");
    std::io::read_to_string(std::io::stdin()).unwrap();
    if arguments.next().as_deref() == Some("kill-all") {
        pinion_process::kill_all();
        println!("killed");
    }
}
