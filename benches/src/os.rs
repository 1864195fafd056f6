//! The few system calls that the standard library lacks: clocks of other processes, waiting for a descriptor,
//! pseudo-terminals, and a fast search for a byte. They are independent of the measurements.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::ptr;
use std::time::Duration;

/// Returns nanoseconds of the monotonic clock, which all processes of a machine share.
pub fn monotonic() -> u64 {
    read_clock(libc::CLOCK_MONOTONIC).as_nanos() as u64
}

/// Returns the processor time of a process so far, with all of its threads, without its children.
pub fn processor_time(pid: u32) -> io::Result<Duration> {
    let mut clock = 0;
    // SAFETY: the call writes one clock id into a local variable.
    let failed = unsafe { libc::clock_getcpuclockid(pid as libc::pid_t, &raw mut clock) };
    if failed != 0 {
        return Err(io::Error::from_raw_os_error(failed));
    }
    Ok(read_clock(clock))
}

fn read_clock(clock: libc::clockid_t) -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the call writes into a local variable; a clock that is gone leaves it at zero.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Waits until there is something to read, or the time is over.
pub fn readable(descriptor: &impl AsRawFd, wait: Duration) -> io::Result<bool> {
    let mut poll = libc::pollfd {
        fd: descriptor.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    let wait = i32::try_from(wait.as_micros().div_ceil(1000)).unwrap_or(i32::MAX);
    // SAFETY: one valid entry, borrowed for the time of the call.
    match unsafe { libc::poll(&raw mut poll, 1, wait) } {
        -1 => Err(io::Error::last_os_error()),
        ready => Ok(ready > 0),
    }
}

/// Returns the first position of `byte` in `bytes`. The C library's search runs at memory speed, which matters when
/// gigabytes of lines are counted on the same cores as the program that writes them.
pub fn find(bytes: &[u8], byte: u8) -> Option<usize> {
    // SAFETY: the pointer and the length belong to one slice.
    let found = unsafe { libc::memchr(bytes.as_ptr().cast(), i32::from(byte), bytes.len()) };
    (!found.is_null()).then(|| found as usize - bytes.as_ptr() as usize)
}

/// Opens a pseudo-terminal of this size and returns the ends of the terminal and of the program.
pub fn pseudo_terminal(columns: u16, rows: u16) -> io::Result<(File, OwnedFd)> {
    let (mut shown, mut used) = (-1, -1);
    let size = libc::winsize {
        ws_row: rows,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    // SAFETY: the call writes two descriptors into local variables and reads the size; the other pointers may be null.
    let failed = unsafe {
        libc::openpty(
            &raw mut shown,
            &raw mut used,
            ptr::null_mut(),
            ptr::null(),
            &raw const size,
        )
    };
    if failed != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: both descriptors were created just now and have no other owner. The flag set on the first is a plain
    // number.
    unsafe {
        libc::fcntl(shown, libc::F_SETFD, libc::FD_CLOEXEC);
        Ok((File::from_raw_fd(shown), OwnedFd::from_raw_fd(used)))
    }
}

/// Makes a command run with this controlling terminal.
pub fn run_on_terminal(command: &mut Command, terminal: OwnedFd) -> io::Result<()> {
    command
        .stdin(Stdio::from(terminal.try_clone()?))
        .stdout(Stdio::from(terminal.try_clone()?))
        .stderr(Stdio::from(terminal));
    let take = || {
        // SAFETY: two calls without pointers, on standard input, which is the terminal by then.
        if unsafe { libc::setsid() == -1 || libc::ioctl(0, libc::TIOCSCTTY, 0) == -1 } {
            Err(io::Error::last_os_error())
        } else {
            Ok(())
        }
    };
    // SAFETY: the code between fork and exec makes system calls only.
    unsafe { command.pre_exec(take) };
    Ok(())
}

/// A set of descriptors that can be waited for.
#[derive(Debug)]
pub struct Readiness(OwnedFd);

impl Readiness {
    /// Creates an empty set.
    pub fn new() -> io::Result<Self> {
        // SAFETY: the call takes no pointers.
        let made = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if made < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was created just now and has no other owner.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(made) }))
    }

    /// Adds a descriptor under this number.
    pub fn watch(&self, descriptor: &impl AsRawFd, number: u64) -> io::Result<()> {
        let mut event = libc::epoll_event {
            events: libc::EPOLLIN as u32,
            u64: number,
        };
        let (queue, watched) = (self.0.as_raw_fd(), descriptor.as_raw_fd());
        // SAFETY: the event is borrowed for the time of the call.
        match unsafe { libc::epoll_ctl(queue, libc::EPOLL_CTL_ADD, watched, &raw mut event) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Waits until a descriptor is readable and returns the numbers of all that are.
    pub fn wait(&self, wait: Duration) -> io::Result<Vec<u64>> {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 256];
        let wait = i32::try_from(wait.as_millis()).unwrap_or(i32::MAX);
        // SAFETY: room for 256 events, borrowed for the time of the call.
        let ready = unsafe { libc::epoll_wait(self.0.as_raw_fd(), events.as_mut_ptr(), 256, wait) };
        match usize::try_from(ready) {
            Err(_) => Err(io::Error::last_os_error()),
            Ok(0) => Err(io::ErrorKind::TimedOut.into()),
            Ok(count) => Ok(events[..count].iter().map(|event| event.u64).collect()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_is_found_where_it_first_stands() {
        assert_eq!(find(b"one\ntwo\n", b'\n'), Some(3));
        assert_eq!(find(b"one", b'\n'), None);
        assert_eq!(find(b"", b'\n'), None);
    }

    #[test]
    fn processor_time_of_this_process_grows() {
        let before = processor_time(std::process::id()).unwrap();
        while processor_time(std::process::id()).unwrap() == before {}
    }
}
