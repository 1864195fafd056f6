//! The attempts. Each runs in the sandbox and fails if it got what it must not get.

mod files;
mod processes;
mod races;
mod sockets;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// An attempt.
#[derive(Clone, Copy)]
pub struct Probe {
    pub name: &'static str,
    attempt: fn(&Places) -> Result<(), String>,
}

/// The places of a test, as the probe sees them. The working directory is the workspace.
pub struct Places {
    pub outside: PathBuf,
    pub secret: PathBuf,
    pub home: PathBuf,
}

macro_rules! probes {
    ($($module:ident::$name:ident,)*) => {
        pub const ALL: &[Probe] = &[$(Probe { name: stringify!($name), attempt: $module::$name },)*];
    };
}

probes! {
    files::hidden_by_link,
    files::write_by_link,
    files::hard_links,
    files::hidden_renamed,
    files::hidden_by_proc,
    files::write_by_proc,
    files::outside_names,
    files::attributes_outside,
    files::truncate_outside,
    files::devices,
    files::git_hooks,
    files::git_moved,
    files::reserved_names,
    files::reserved_by_rename,
    files::kernel_files,
    files::ordinary_work,
    processes::signals,
    processes::tracing,
    processes::limits_of_others,
    processes::memory_program,
    processes::rings,
    processes::namespaces,
    processes::mounts,
    processes::keys,
    processes::terminal_input,
    processes::descriptors,
    processes::foreign_calls,
    processes::new_calls,
    sockets::datagrams,
    sockets::odd_sockets,
    sockets::tcp_elsewhere,
    sockets::fast_open,
    sockets::unix_sockets,
    sockets::server_of_everyone,
    sockets::own_servers,
    races::flipping_paths,
    races::flipping_directories,
    races::flipping_addresses,
    races::waiting_calls,
}

/// Runs the probe of this name.
pub fn run(name: &str, top: &Path) -> ExitCode {
    let Some(probe) = ALL.iter().find(|probe| probe.name == name) else {
        eprintln!("no probe {name}");
        return ExitCode::from(3);
    };
    let places = Places {
        outside: top.join("outside"),
        secret: top.join("home/.ssh/id_test"),
        home: top.join("home"),
    };
    match (probe.attempt)(&places) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::from(1)
        }
    }
}

/// Fails if something that must not happen happened.
pub fn must_fail<T>(what: &str, result: std::io::Result<T>) -> Result<(), String> {
    match result {
        Ok(_) => Err(format!("{what} succeeded")),
        Err(_) => Ok(()),
    }
}

/// Fails if something that must work did not.
pub fn must_work<T>(what: &str, result: std::io::Result<T>) -> Result<T, String> {
    result.map_err(|error| format!("{what}: {error}"))
}
