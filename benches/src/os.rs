//! The few system calls the standard library has no name for: clocks of other processes, waiting for
//! a descriptor, and a fast search for a byte. Nothing here knows what is measured.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::AsRawFd;
use std::time::Duration;

/// Nanoseconds of the monotonic clock, which all processes of a machine share.
pub fn monotonic() -> u64 {
    read_clock(libc::CLOCK_MONOTONIC).as_nanos() as u64
}

/// Processor time a process has used so far, with all of its threads, without its children.
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

/// Where `byte` first stands in `bytes`. The C library's search runs at memory speed, which matters
/// when gigabytes of lines are counted on the same cores as the program that writes them.
pub fn find(bytes: &[u8], byte: u8) -> Option<usize> {
    // SAFETY: the pointer and the length belong to one slice.
    let found = unsafe { libc::memchr(bytes.as_ptr().cast(), i32::from(byte), bytes.len()) };
    (!found.is_null()).then(|| found as usize - bytes.as_ptr() as usize)
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
    fn our_own_processor_time_grows() {
        let before = processor_time(std::process::id()).unwrap();
        while processor_time(std::process::id()).unwrap() == before {}
    }
}
