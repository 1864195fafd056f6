//! Reads and writes that return instead of waiting, on descriptors that other processes share.
//!
//! A shared descriptor must not be made non-blocking: the mode belongs to the open file, so a client or a shell at the
//! other end of the copy would see it. Each call asks the kernel not to wait instead.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// The descriptors that can be read and written without waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StreamKind {
    Pipe,
    Socket,
}

impl StreamKind {
    /// Returns the kind of `descriptor`. `None` for files, terminals, devices and datagrams, which need a thread.
    pub(crate) fn of(descriptor: BorrowedFd<'_>) -> Option<Self> {
        let fd = descriptor.as_raw_fd();
        // SAFETY: a plain structure of numbers, for which zeros are valid.
        let mut stat: libc::stat = unsafe { std::mem::zeroed() };
        // SAFETY: the structure is valid and lives across the call.
        if unsafe { libc::fstat(fd, &mut stat) } != 0 {
            return None;
        }
        match stat.st_mode & libc::S_IFMT {
            libc::S_IFIFO => Some(Self::Pipe),
            libc::S_IFSOCK if is_stream_socket(fd) => Some(Self::Socket),
            _ => None,
        }
    }

    /// Reads what is there. Fails with [`io::ErrorKind::WouldBlock`] if nothing is.
    pub(crate) fn read(self, descriptor: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
        let fd = descriptor.as_raw_fd();
        let (bytes, length) = (buffer.as_mut_ptr().cast::<libc::c_void>(), buffer.len());
        match self {
            // SAFETY: the buffer is valid for writes of its length across the call.
            Self::Socket => result(unsafe { libc::recv(fd, bytes, length, libc::MSG_DONTWAIT) }),
            Self::Pipe => {
                let read = without_wait(libc::SYS_preadv2, fd, bytes, length);
                if !is_unsupported(&read) {
                    return read;
                }
                if !is_ready(fd, libc::POLLIN) {
                    return Err(io::ErrorKind::WouldBlock.into());
                }
                // SAFETY: as above; the pipe has data or has ended, so the call does not wait.
                result(unsafe { libc::read(fd, bytes, length) })
            }
        }
    }

    /// Writes as much as fits. Fails with [`io::ErrorKind::WouldBlock`] if nothing does.
    pub(crate) fn write(self, descriptor: BorrowedFd<'_>, buffer: &[u8]) -> io::Result<usize> {
        let fd = descriptor.as_raw_fd();
        let (bytes, length) = (buffer.as_ptr().cast::<libc::c_void>(), buffer.len());
        match self {
            // SAFETY: the buffer is valid for reads of its length across the call.
            Self::Socket => result(unsafe {
                libc::send(fd, bytes, length, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL)
            }),
            Self::Pipe => {
                let written = without_wait(libc::SYS_pwritev2, fd, bytes.cast_mut(), length);
                if !is_unsupported(&written) {
                    return written;
                }
                if !is_ready(fd, libc::POLLOUT) {
                    return Err(io::ErrorKind::WouldBlock.into());
                }
                // A pipe that can be written has room for this many bytes.
                let length = length.min(libc::PIPE_BUF);
                // SAFETY: as above.
                result(unsafe { libc::write(fd, bytes, length) })
            }
        }
    }
}

fn is_stream_socket(fd: i32) -> bool {
    let mut kind: libc::c_int = 0;
    let mut size = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: both pointers refer to values of the size that the call expects, and live across it.
    let found = unsafe {
        libc::getsockopt(
            fd,
            libc::SOL_SOCKET,
            libc::SO_TYPE,
            (&raw mut kind).cast(),
            &mut size,
        )
    };
    found == 0 && kind == libc::SOCK_STREAM
}

/// Calls `preadv2` or `pwritev2` at the current position with `RWF_NOWAIT`. Called by number, because old C libraries
/// lack the functions.
fn without_wait(
    number: libc::c_long,
    fd: i32,
    bytes: *mut libc::c_void,
    length: usize,
) -> io::Result<usize> {
    let vector = libc::iovec {
        iov_base: bytes,
        iov_len: length,
    };
    let here: libc::c_long = -1;
    // SAFETY: one valid vector over a buffer of the caller, which lives across the call; the kernel writes to the buffer
    // only for preadv2, whose caller passes a mutable one.
    let count = unsafe {
        libc::syscall(
            number,
            fd,
            &raw const vector,
            1 as libc::c_long,
            here,
            here,
            libc::RWF_NOWAIT,
        )
    };
    result(count as isize)
}

/// Reports whether the kernel or this kind of pipe lacks calls that do not wait.
fn is_unsupported(result: &io::Result<usize>) -> bool {
    let code = result.as_ref().err().and_then(io::Error::raw_os_error);
    matches!(
        code,
        Some(libc::EOPNOTSUPP | libc::ENOSYS | libc::EINVAL | libc::EPERM)
    )
}

fn is_ready(fd: i32, events: libc::c_short) -> bool {
    let mut poll = libc::pollfd {
        fd,
        events,
        revents: 0,
    };
    // SAFETY: one valid pollfd, which lives across the call.
    unsafe { libc::poll(&mut poll, 1, 0) > 0 }
}

fn result(count: isize) -> io::Result<usize> {
    usize::try_from(count).map_err(|_| io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::Write;
    use std::os::fd::AsFd;
    use std::os::unix::net::{UnixDatagram, UnixStream};

    fn is_waiting(result: io::Result<usize>) -> bool {
        result.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Checks one direction of a stream from empty to full and to its end.
    fn never_waits(input: impl AsFd, output: impl AsFd) {
        let kind = StreamKind::of(input.as_fd()).unwrap();
        let mut buffer = [0; 100];
        assert!(is_waiting(kind.read(input.as_fd(), &mut buffer)));
        assert_eq!(kind.write(output.as_fd(), b"abc").unwrap(), 3);
        assert_eq!(kind.read(input.as_fd(), &mut buffer).unwrap(), 3);
        assert_eq!(&buffer[..3], b"abc");
        let block = [b'x'; 3000];
        let mut written = 0;
        let full = loop {
            match kind.write(output.as_fd(), &block) {
                Ok(count) => written += count,
                Err(error) => break error,
            }
        };
        assert_eq!(full.kind(), io::ErrorKind::WouldBlock);
        assert!(written >= 4096);
        drop(output);
        let mut read = 0;
        loop {
            match kind.read(input.as_fd(), &mut buffer).unwrap() {
                0 => break,
                count => read += count,
            }
        }
        assert_eq!(read, written);
    }

    #[test]
    fn pipes_and_sockets_never_wait() {
        let (input, output) = io::pipe().unwrap();
        never_waits(input, output);
        let (input, output) = UnixStream::pair().unwrap();
        never_waits(input, output);
    }

    #[test]
    fn a_reader_that_is_gone_is_an_error_and_not_a_signal() {
        let (input, output) = UnixStream::pair().unwrap();
        drop(input);
        let broken = StreamKind::Socket.write(output.as_fd(), b"x").unwrap_err();
        assert_eq!(broken.kind(), io::ErrorKind::BrokenPipe);
    }

    #[test]
    fn files_devices_and_datagrams_need_a_thread() {
        let mut path = std::env::temp_dir();
        path.push(format!("pinion-nowait-{}", std::process::id()));
        let mut file = File::create(&path).unwrap();
        file.write_all(b"x").unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(StreamKind::of(file.as_fd()), None);
        let null = File::open("/dev/null").unwrap();
        assert_eq!(StreamKind::of(null.as_fd()), None);
        let (one, _other) = UnixDatagram::pair().unwrap();
        assert_eq!(StreamKind::of(one.as_fd()), None);
    }
}
