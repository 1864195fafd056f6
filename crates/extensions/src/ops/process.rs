//! The process as extensions see it, for `node:process` and `node:os`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write;
use std::sync::{LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::stat::{Mode, umask};
use nix::unistd::{User, getegid, geteuid, getgid, getppid, getuid};
use rquickjs::prelude::Func;
use rquickjs::{Ctx, Object};

use super::bytes::Bytes;
use super::child::send_signal;
use super::syscall_error::SyscallError;

/// The environment with the changes that extensions made. The environment of the process itself never changes, because
/// other threads read it.
static ENVIRONMENT: OnceLock<Mutex<BTreeMap<String, String>>> = OnceLock::new();
static STARTED: LazyLock<Instant> = LazyLock::new(Instant::now);

fn variables_now() -> MutexGuard<'static, BTreeMap<String, String>> {
    let variables = ENVIRONMENT.get_or_init(|| {
        let variables = std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        Mutex::new(variables.collect())
    });
    variables.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the whole environment for a program that an extension starts.
pub(crate) fn environment() -> Vec<(OsString, OsString)> {
    let text = variables_now();
    let text = text.iter().map(|(name, value)| (name.into(), value.into()));
    // Extensions can neither see nor change variables that are not UTF-8.
    let other = std::env::vars_os()
        .filter(|(name, value)| name.to_str().is_none() || value.to_str().is_none());
    text.chain(other).collect()
}

/// Returns the whole environment if extensions have accessed it and so may have changed it.
pub fn changed_environment() -> Option<Vec<(OsString, OsString)>> {
    ENVIRONMENT.get().map(|_| environment())
}

/// Returns the value of a variable with the changes that extensions made.
pub fn environment_variable(name: &str) -> Option<String> {
    match ENVIRONMENT.get() {
        Some(_) => variables_now().get(name).cloned(),
        // A name with `=` or NUL cannot be set, and reading it would panic on some systems.
        None if name.is_empty() || name.contains(['=', '\0']) => None,
        None => std::env::var(name).ok(),
    }
}

pub(crate) fn install<'js>(ctx: &Ctx<'js>, ops: &Object<'js>) -> rquickjs::Result<()> {
    let started = *STARTED;
    let group = super::group(ctx, ops, "process")?;
    variables(&group)?;
    identity(&group)?;
    group.set(
        "cwd",
        Func::from(|ctx: Ctx<'js>| match std::env::current_dir() {
            Ok(directory) => Ok(directory.to_string_lossy().into_owned()),
            Err(error) => Err(SyscallError::new(error, "uv_cwd").throw(&ctx)),
        }),
    )?;
    group.set(
        "chdir",
        Func::from(|ctx: Ctx<'js>, directory: String| {
            let before = std::env::current_dir().unwrap_or_default();
            std::env::set_current_dir(&directory).map_err(|error| {
                let before = before.to_string_lossy().into_owned();
                SyscallError::new(error, "chdir")
                    .at(before)
                    .to(directory)
                    .throw(&ctx)
            })
        }),
    )?;
    group.set(
        "kill",
        Func::from(|ctx: Ctx<'js>, pid: i32, signal: i32| {
            send_signal(pid, signal).map_err(|error| SyscallError::new(error, "kill").throw(&ctx))
        }),
    )?;
    // Standard output belongs to the front, so that only standard error is offered.
    group.set(
        "writeError",
        Func::from(|bytes: Bytes| {
            let _ = std::io::stderr().write_all(&bytes.0);
        }),
    )?;
    // A negative mask only reads the current one.
    group.set(
        "umask",
        Func::from(|mask: i32| {
            let wanted = u32::try_from(mask).unwrap_or(0o022);
            let before = umask(Mode::from_bits_truncate(wanted));
            if mask < 0 {
                umask(before);
            }
            before.bits()
        }),
    )?;
    // A script calls this in a loop while it waits for the end of the program that it requested.
    group.set(
        "pause",
        Func::from(|| std::thread::sleep(Duration::from_millis(1))),
    )?;
    group.set(
        "elapsed",
        Func::from(move || {
            let elapsed = started.elapsed();
            vec![elapsed.as_secs() as f64, f64::from(elapsed.subsec_nanos())]
        }),
    )
}

fn variables(group: &Object<'_>) -> rquickjs::Result<()> {
    group.set("environment", Func::from(|| variables_now().clone()))?;
    group.set(
        "variable",
        Func::from(|name: String| variables_now().get(&name).cloned()),
    )?;
    group.set(
        "setVariable",
        Func::from(|name: String, value: String| {
            variables_now().insert(name, value);
        }),
    )?;
    group.set(
        "removeVariable",
        Func::from(|name: String| {
            variables_now().remove(&name);
        }),
    )
}

fn identity(group: &Object<'_>) -> rquickjs::Result<()> {
    // In pages of memory. Scripts cannot open files of this process.
    group.set(
        "residentPages",
        Func::from(|| {
            let sizes = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
            let resident = sizes.split(' ').nth(1);
            resident.and_then(|pages| pages.parse::<f64>().ok())
        }),
    )?;
    group.set("pid", std::process::id())?;
    group.set("ppid", Func::from(|| getppid().as_raw()))?;
    group.set("uid", Func::from(|| getuid().as_raw()))?;
    group.set("gid", Func::from(|| getgid().as_raw()))?;
    group.set("euid", Func::from(|| geteuid().as_raw()))?;
    group.set("egid", Func::from(|| getegid().as_raw()))?;
    group.set("arch", std::env::consts::ARCH)?;
    group.set("system", std::env::consts::OS)?;
    let program = std::env::current_exe().unwrap_or_default();
    group.set("program", program.to_string_lossy().into_owned())?;
    let arguments: Vec<String> = std::env::args_os()
        .skip(1)
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    group.set("arguments", arguments)?;
    // name, home directory, shell
    group.set(
        "user",
        Func::from(|| {
            let user = User::from_uid(getuid()).ok().flatten();
            user.map(|user| {
                let text = |path: std::path::PathBuf| path.to_string_lossy().into_owned();
                vec![user.name, text(user.dir), text(user.shell)]
            })
        }),
    )
}
