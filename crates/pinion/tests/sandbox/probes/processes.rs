//! Other processes, the kernel's other interfaces.

use std::fs;
use std::os::unix::process::parent_id;
use std::process::Command;

use super::{Places, must_fail, must_work};
use crate::calls::{HERE, at, call, refused, text};

const NONE: usize = 0;

pub fn signals(_: &Places) -> Result<(), String> {
    for process in [parent_id() as usize, 1] {
        refused(
            "kill",
            libc::SYS_kill,
            [process, 0, 0, 0, 0, 0],
            libc::EPERM,
        )?;
        refused(
            "tgkill",
            libc::SYS_tgkill,
            [process, process, 0, 0, 0, 0],
            libc::EPERM,
        )?;
        if let Ok(descriptor) = call(libc::SYS_pidfd_open, [process, 0, 0, 0, 0, 0]) {
            let arguments = [descriptor as usize, 0, 0, 0, 0, 0];
            refused(
                "pidfd_send_signal",
                libc::SYS_pidfd_send_signal,
                arguments,
                libc::EPERM,
            )?;
        }
    }
    call(libc::SYS_kill, [std::process::id() as usize, 0, 0, 0, 0, 0])
        .map(drop)
        .map_err(|error| format!("no signal to itself: {error}"))
}

pub fn tracing(_: &Places) -> Result<(), String> {
    let parent = parent_id() as usize;
    for request in [libc::PTRACE_ATTACH as usize, libc::PTRACE_SEIZE as usize] {
        refused(
            "ptrace",
            libc::SYS_ptrace,
            [request, parent, 0, 0, 0, 0],
            libc::EPERM,
        )?;
    }
    let buffer = [0_u8; 8];
    let part = [buffer.as_ptr() as usize, buffer.len()];
    let part = part.as_ptr() as usize;
    refused(
        "process_vm_readv",
        libc::SYS_process_vm_readv,
        [parent, part, 1, part, 1, 0],
        libc::EPERM,
    )?;
    refused(
        "process_vm_writev",
        libc::SYS_process_vm_writev,
        [parent, part, 1, part, 1, 0],
        libc::EPERM,
    )?;
    let process = call(libc::SYS_pidfd_open, [parent, 0, 0, 0, 0, 0])
        .map_err(|error| format!("pidfd_open: {error}"))?;
    refused(
        "pidfd_getfd",
        libc::SYS_pidfd_getfd,
        [process as usize, 0, 0, 0, 0, 0],
        libc::EPERM,
    )
}

pub fn limits_of_others(_: &Places) -> Result<(), String> {
    let parent = parent_id() as usize;
    let limit = [100_u64, 100];
    let limit = limit.as_ptr() as usize;
    let files = libc::RLIMIT_NOFILE as usize;
    refused(
        "prlimit",
        libc::SYS_prlimit64,
        [parent, files, limit, 0, 0, 0],
        libc::EPERM,
    )?;
    refused(
        "setpriority",
        libc::SYS_setpriority,
        [0, parent, 19, 0, 0, 0],
        libc::EPERM,
    )?;
    refused(
        "setpriority of the user",
        libc::SYS_setpriority,
        [2, 0, 19, 0, 0, 0],
        libc::EPERM,
    )?;
    refused(
        "ioprio_set",
        libc::SYS_ioprio_set,
        [1, parent, 0x6000, 0, 0, 0],
        libc::EPERM,
    )?;
    let cpus = [1_u64; 16];
    let cpus = cpus.as_ptr() as usize;
    refused(
        "sched_setaffinity",
        libc::SYS_sched_setaffinity,
        [parent, 128, cpus, 0, 0, 0],
        libc::EPERM,
    )?;
    call(libc::SYS_setpriority, [0, 0, 19, 0, 0, 0])
        .map(drop)
        .map_err(|error| format!("its own priority: {error}"))
}

/// A program that exists in memory only is as confined as any other.
pub fn memory_program(places: &Places) -> Result<(), String> {
    let program = must_work("itself", fs::read("/proc/self/exe"))?;
    let name = text("program");
    let number = call(libc::SYS_memfd_create, [at(&name), 0, 0, 0, 0, 0])
        .map_err(|error| format!("memfd: {error}"))?;
    let path = format!("/proc/{}/fd/{number}", std::process::id());
    must_work("filling it", fs::write(&path, program))?;
    let top = places.outside.parent().ok_or("no directory")?;
    let status = Command::new(&path)
        .args(["__probe", "write_by_link"])
        .arg(top)
        .status();
    match must_work("running it", status)?.success() {
        true => Ok(()),
        false => Err("it wrote outside".into()),
    }
}

pub fn rings(_: &Places) -> Result<(), String> {
    let parameters = [0_u64; 32];
    let address = parameters.as_ptr() as usize;
    refused(
        "io_uring_setup",
        libc::SYS_io_uring_setup,
        [4, address, 0, 0, 0, 0],
        libc::EPERM,
    )?;
    refused(
        "userfaultfd",
        libc::SYS_userfaultfd,
        [1, 0, 0, 0, 0, 0],
        libc::EPERM,
    )?;
    refused("bpf", libc::SYS_bpf, [0, address, 64, 0, 0, 0], libc::EPERM)?;
    refused(
        "perf_event_open",
        libc::SYS_perf_event_open,
        [address, 0, 0, 0, 0, 0],
        libc::EPERM,
    )
}

pub fn namespaces(_: &Places) -> Result<(), String> {
    for flag in [
        libc::CLONE_NEWUSER,
        libc::CLONE_NEWNS,
        libc::CLONE_NEWNET,
        libc::CLONE_NEWPID,
    ] {
        refused(
            "unshare",
            libc::SYS_unshare,
            [flag as usize, 0, 0, 0, 0, 0],
            libc::EPERM,
        )?;
        let flags = (flag | libc::SIGCHLD) as usize;
        refused(
            "clone",
            libc::SYS_clone,
            [flags, 0, 0, 0, 0, 0],
            libc::EPERM,
        )?;
    }
    let arguments = [0_u64; 11];
    let arguments = [arguments.as_ptr() as usize, 88, 0, 0, 0, 0];
    refused("clone3", libc::SYS_clone3, arguments, libc::ENOSYS)?;
    refused("setns", libc::SYS_setns, [0, 0, 0, 0, 0, 0], libc::EPERM)
}

pub fn mounts(_: &Places) -> Result<(), String> {
    let (from, to, kind) = (text("/etc"), text("."), text("tmpfs"));
    let bind = libc::MS_BIND as usize;
    refused(
        "a bind mount",
        libc::SYS_mount,
        [at(&from), at(&to), NONE, bind, NONE, 0],
        libc::EPERM,
    )?;
    refused(
        "tmpfs",
        libc::SYS_mount,
        [at(&kind), at(&to), at(&kind), 0, NONE, 0],
        libc::EPERM,
    )?;
    refused(
        "umount",
        libc::SYS_umount2,
        [at(&to), 0, 0, 0, 0, 0],
        libc::EPERM,
    )?;
    refused(
        "open_tree",
        libc::SYS_open_tree,
        [HERE, at(&from), 1, 0, 0, 0],
        libc::EPERM,
    )?;
    refused(
        "fsopen",
        libc::SYS_fsopen,
        [at(&kind), 0, 0, 0, 0, 0],
        libc::EPERM,
    )?;
    refused(
        "chroot",
        libc::SYS_chroot,
        [at(&to), 0, 0, 0, 0, 0],
        libc::EPERM,
    )?;
    refused(
        "pivot_root",
        libc::SYS_pivot_root,
        [at(&to), at(&to), 0, 0, 0, 0],
        libc::EPERM,
    )?;
    let handle = [8_u32; 16];
    let handle = handle.as_ptr() as usize;
    refused(
        "a handle",
        libc::SYS_open_by_handle_at,
        [HERE, handle, 0, 0, 0, 0],
        libc::EPERM,
    )
}

pub fn keys(_: &Places) -> Result<(), String> {
    let (kind, name) = (text("user"), text("x"));
    refused("keyctl", libc::SYS_keyctl, [0, 3, 0, 0, 0, 0], libc::EPERM)?;
    refused(
        "add_key",
        libc::SYS_add_key,
        [at(&kind), at(&name), at(&name), 1, 3, 0],
        libc::EPERM,
    )?;
    refused(
        "request_key",
        libc::SYS_request_key,
        [at(&kind), at(&name), 0, 3, 0, 0],
        libc::EPERM,
    )
}

/// Input is not pushed into a terminal, whatever the upper half of the request number.
pub fn terminal_input(_: &Places) -> Result<(), String> {
    let letter = text("x");
    let high = 1_usize << 40;
    let flags = (libc::O_RDWR | libc::O_NOCTTY) as usize;
    let maker = text("/dev/ptmx");
    let terminal = call(libc::SYS_openat, [HERE, at(&maker), flags, 0, 0, 0]);
    let terminal = terminal.map_err(|error| format!("no terminal of its own: {error}"))? as usize;
    let request = libc::TIOCSTI as usize;
    for request in [request, request | high, libc::TIOCLINUX as usize] {
        refused(
            "TIOCSTI",
            libc::SYS_ioctl,
            [terminal, request, at(&letter), 0, 0, 0],
            libc::EPERM,
        )?;
    }
    Ok(())
}

pub fn descriptors(_: &Places) -> Result<(), String> {
    let directory = must_work("descriptors", fs::read_dir("/proc/self/fd"))?;
    let open: Vec<(i32, String)> = directory
        .flatten()
        .filter_map(|entry| {
            let number = entry.file_name().to_str()?.parse().ok()?;
            let target = fs::read_link(entry.path()).ok()?;
            Some((number, target.display().to_string()))
        })
        .filter(|(number, target)| *number > 2 && !target.starts_with("/proc/"))
        .collect();
    match open.is_empty() {
        true => Ok(()),
        false => Err(format!("open: {open:?}")),
    }
}

/// Calls of other architectures have other numbers, so no table of this one judges them.
pub fn foreign_calls(_: &Places) -> Result<(), String> {
    let x32 = 0x4000_0000;
    refused("x32", x32 | libc::SYS_getpid, [0; 6], libc::ENOSYS)?;
    refused("x32 open", x32 | libc::SYS_openat, [0; 6], libc::ENOSYS)?;
    #[cfg(target_arch = "x86_64")]
    if let Some(code) = crate::calls::foreign_call() {
        return Err(format!("i386 ended with {code}"));
    }
    Ok(())
}

pub fn new_calls(_: &Places) -> Result<(), String> {
    let arguments = [0_u64; 4];
    let how = arguments.as_ptr() as usize;
    let name = text("/etc/hostname");
    refused(
        "openat2",
        libc::SYS_openat2,
        [HERE, at(&name), how, 24, 0, 0],
        libc::ENOSYS,
    )?;
    for number in 463..520 {
        refused("a new call", number, [0; 6], libc::ENOSYS)?;
    }
    must_fail(
        "su",
        Command::new("su")
            .args(["-c", "true"])
            .output()
            .and_then(|output| {
                // Root may become root; nobody else may.
                match output.status.success() && !nix::unistd::geteuid().is_root() {
                    true => Ok(()),
                    false => Err(std::io::ErrorKind::PermissionDenied.into()),
                }
            }),
    )
}
