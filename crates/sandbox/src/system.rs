//! The system calls of the sandbox, each with its arguments checked by types. All unsafe code of the crate is here.
//!
//! Errors are plain `errno` values, because most of them are handed on to the confined process.
#![allow(
    unsafe_code,
    reason = "Landlock, seccomp and calls relative to descriptors have no safe interface"
)]

use std::ffi::CStr;
use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::OnceLock;

/// An error number of the system.
pub(crate) type Errno = i32;

/// Access rights of Landlock to files.
pub(crate) mod access {
    pub const EXECUTE: u64 = 1;
    pub const READ_FILE: u64 = 1 << 2;
    pub const READ_DIR: u64 = 1 << 3;
    /// Every right of ABI 5 and later.
    pub const ALL: u64 = (1 << 16) - 1;
}

const LANDLOCK_CREATE_RULESET_VERSION: u32 = 1;
const LANDLOCK_RULE_PATH_BENEATH: u32 = 1;
const LANDLOCK_NET_ALL: u64 = 0b11;
const LANDLOCK_SCOPE_ALL: u64 = 0b11;

#[repr(C)]
struct RulesetAttributes {
    handled_access_fs: u64,
    handled_access_net: u64,
    scoped: u64,
}

#[repr(C, packed)]
struct PathBeneath {
    allowed_access: u64,
    parent_fd: i32,
}

/// Returns the error of the system call that has just failed.
pub(crate) fn errno() -> Errno {
    io::Error::last_os_error()
        .raw_os_error()
        .unwrap_or(libc::EIO)
}

fn checked(result: libc::c_long) -> Result<libc::c_long, Errno> {
    if result < 0 { Err(errno()) } else { Ok(result) }
}

fn own(result: Result<libc::c_long, Errno>) -> Result<OwnedFd, Errno> {
    // SAFETY: the kernel has just made this descriptor, and no other code has its number.
    result.map(|descriptor| unsafe { OwnedFd::from_raw_fd(descriptor as RawFd) })
}

/// Returns the version of Landlock's interface.
pub(crate) fn landlock_abi() -> Result<i32, Errno> {
    // SAFETY: the call takes no pointer with this flag.
    let version = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<RulesetAttributes>(),
            0_usize,
            LANDLOCK_CREATE_RULESET_VERSION,
        )
    };
    checked(version).map(|version| version as i32)
}

/// Creates a rule set that handles every right to files and TCP ports, and confines signals and abstract sockets.
pub(crate) fn create_ruleset() -> Result<OwnedFd, Errno> {
    let attributes = RulesetAttributes {
        handled_access_fs: access::ALL,
        handled_access_net: LANDLOCK_NET_ALL,
        scoped: LANDLOCK_SCOPE_ALL,
    };
    // SAFETY: the structure is valid and has the length that is passed with it.
    own(checked(unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            &raw const attributes,
            size_of::<RulesetAttributes>(),
            0_u32,
        )
    }))
}

/// Grants rights to a file, or to a directory with everything below it.
pub(crate) fn add_rule(ruleset: &OwnedFd, place: &OwnedFd, allowed: u64) -> Result<(), Errno> {
    let rule = PathBeneath {
        allowed_access: allowed,
        parent_fd: place.as_raw_fd(),
    };
    // SAFETY: the structure is valid for the length of the call.
    checked(unsafe {
        libc::syscall(
            libc::SYS_landlock_add_rule,
            ruleset.as_raw_fd(),
            LANDLOCK_RULE_PATH_BENEATH,
            &raw const rule,
            0_u32,
        )
    })
    .map(drop)
}

/// Restricts the calling thread. Safe between fork and exec.
pub(crate) fn restrict_self(ruleset: RawFd) -> Result<(), Errno> {
    // SAFETY: the call takes no pointer.
    checked(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset, 0_u32) }).map(drop)
}

/// Gives up rights that `exec` could add, for the calling thread. Safe between fork and exec.
pub(crate) fn set_no_new_privileges() -> Result<(), Errno> {
    // SAFETY: the call takes no pointer.
    checked(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }.into()).map(drop)
}

const SECCOMP_SET_MODE_FILTER: u32 = 1;
const SECCOMP_FILTER_FLAG_NEW_LISTENER: u64 = 1 << 3;
const SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV: u64 = 1 << 5;

/// Installs a filter and returns the number of its listener. Safe between fork and exec.
pub(crate) fn install_filter(program: &[libc::sock_filter]) -> Result<RawFd, Errno> {
    let program = libc::sock_fprog {
        len: program.len() as u16,
        filter: program.as_ptr().cast_mut(),
    };
    // A call that is being performed is not interrupted by signals: it would be performed twice.
    let flags = SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    // SAFETY: the program is valid for the length of the call, and the kernel only reads it.
    checked(unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            SECCOMP_SET_MODE_FILTER,
            flags,
            &raw const program,
        )
    })
    .map(|listener| listener as RawFd)
}

/// A call of a confined thread that waits for an answer.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Notification {
    pub id: u64,
    /// The thread that made the call.
    pub thread: u32,
    flags: u32,
    pub number: i32,
    architecture: u32,
    instruction: u64,
    pub arguments: [u64; 6],
}

#[repr(C)]
struct Response {
    id: u64,
    value: i64,
    error: i32,
    flags: u32,
}

#[repr(C)]
struct AddedDescriptor {
    id: u64,
    flags: u32,
    source: u32,
    target: u32,
    target_flags: u32,
}

const NOTIF_RECV: libc::Ioctl = 0xc050_2100_u32 as libc::Ioctl;
const NOTIF_SEND: libc::Ioctl = 0xc018_2101_u32 as libc::Ioctl;
const NOTIF_ID_VALID: libc::Ioctl = 0x4008_2102;
const NOTIF_ADDFD: libc::Ioctl = 0x4018_2103;

/// Takes the next call. Fails with `ENOENT` if its thread has just ended.
pub(crate) fn receive(listener: &OwnedFd) -> Result<Notification, Errno> {
    let mut notification = Notification::default();
    // SAFETY: the structure is zeroed, as the kernel requires, and valid for writing.
    let result = unsafe { libc::ioctl(listener.as_raw_fd(), NOTIF_RECV, &raw mut notification) };
    checked(result.into()).map(|_| notification)
}

/// Reports whether the thread of call `id` still waits.
pub(crate) fn still_waits(listener: &OwnedFd, id: u64) -> bool {
    // SAFETY: the kernel reads one number.
    unsafe { libc::ioctl(listener.as_raw_fd(), NOTIF_ID_VALID, &raw const id) == 0 }
}

/// Ends call `id` with a value, or with an error number.
pub(crate) fn respond(listener: &OwnedFd, id: u64, result: Result<i64, Errno>) {
    let response = Response {
        id,
        value: result.unwrap_or(0),
        error: result.err().map_or(0, |error| -error),
        flags: 0,
    };
    send(listener, response);
}

fn send(listener: &OwnedFd, response: Response) {
    // SAFETY: the structure is valid; a failure means that the thread has ended.
    unsafe { libc::ioctl(listener.as_raw_fd(), NOTIF_SEND, &raw const response) };
}

/// Ends call `id` with a new descriptor of the confined process, a copy of `source`. The source is closed before the process
/// continues: a program that is open for writing elsewhere could not be run.
pub(crate) fn respond_with_descriptor(
    listener: &OwnedFd,
    id: u64,
    source: OwnedFd,
    close_on_exec: bool,
) -> Result<(), Errno> {
    let added = AddedDescriptor {
        id,
        flags: 0,
        source: source.as_raw_fd() as u32,
        target: 0,
        target_flags: if close_on_exec {
            libc::O_CLOEXEC as u32
        } else {
            0
        },
    };
    // SAFETY: the structure is valid for the length of the call.
    let result = unsafe { libc::ioctl(listener.as_raw_fd(), NOTIF_ADDFD, &raw const added) };
    let number = checked(result.into())?;
    drop(source);
    respond(listener, id, Ok(number));
    Ok(())
}

/// Waits until a call arrives. `false` means that every process of the filter has ended.
pub(crate) fn wait_for_call(listener: &OwnedFd) -> bool {
    let mut poll = libc::pollfd {
        fd: listener.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    loop {
        // SAFETY: one valid structure.
        let ready = unsafe { libc::poll(&raw mut poll, 1, -1) };
        if ready < 0 && errno() == libc::EINTR {
            continue;
        }
        return ready > 0 && poll.revents & libc::POLLIN != 0;
    }
}

/// Waits up to `milliseconds` until a socket can be written to or has failed.
pub(crate) fn wait_writable(socket: &OwnedFd, milliseconds: i32) -> bool {
    let mut poll = libc::pollfd {
        fd: socket.as_raw_fd(),
        events: libc::POLLOUT,
        revents: 0,
    };
    // SAFETY: one valid structure.
    unsafe { libc::poll(&raw mut poll, 1, milliseconds) > 0 }
}

/// Copies memory of another process. Returns the number of bytes; fewer than asked for at the end of its memory.
pub(crate) fn read_memory(thread: u32, address: u64, into: &mut [u8]) -> Result<usize, Errno> {
    let local = libc::iovec {
        iov_base: into.as_mut_ptr().cast(),
        iov_len: into.len(),
    };
    let remote = libc::iovec {
        iov_base: address as *mut libc::c_void,
        iov_len: into.len(),
    };
    // SAFETY: the kernel writes at most `iov_len` bytes into `into`, and checks the other side itself.
    let count = unsafe {
        libc::process_vm_readv(
            thread as libc::pid_t,
            &raw const local,
            1,
            &raw const remote,
            1,
            0,
        )
    };
    checked(count as libc::c_long).map(|count| count as usize)
}

const PIDFD_THREAD: u32 = libc::O_EXCL as u32;

/// Copies descriptor `number` of the thread.
pub(crate) fn copy_descriptor(thread: u32, leader: u32, number: i32) -> Result<OwnedFd, Errno> {
    let open = |id: u32, flags: u32| {
        // SAFETY: the call takes no pointer.
        own(checked(unsafe {
            libc::syscall(libc::SYS_pidfd_open, id, flags)
        }))
    };
    // Before Linux 6.9 only the first thread of a process can be named.
    let process = match open(thread, PIDFD_THREAD) {
        Err(libc::EINVAL) => open(leader, 0)?,
        opened => opened?,
    };
    // SAFETY: the call takes no pointer.
    own(checked(unsafe {
        libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), number, 0_u32)
    }))
}

/// Opens `name` below `directory`.
pub(crate) fn open_at(
    directory: RawFd,
    name: &CStr,
    flags: i32,
    mode: u32,
) -> Result<OwnedFd, Errno> {
    let flags = flags | libc::O_CLOEXEC | libc::O_NOCTTY;
    // SAFETY: the name ends in NUL and lives as long as the call.
    own(checked(
        unsafe { libc::openat(directory, name.as_ptr(), flags, mode) }.into(),
    ))
}

/// The facts about a file that the sandbox uses.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FileFacts {
    pub mode: u32,
    pub device: u64,
    pub inode: u64,
    pub links: u64,
    /// The device that a device node stands for.
    pub node: (u32, u32),
}

impl FileFacts {
    /// Returns the type: one of the `S_IF` values.
    pub fn kind(&self) -> u32 {
        self.mode & libc::S_IFMT
    }
}

/// Returns the facts about an open file.
pub(crate) fn facts(file: &OwnedFd) -> Result<FileFacts, Errno> {
    let mut found = MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: the structure is valid for writing, and all zeroes are valid for it.
    let found = unsafe {
        checked(libc::fstat(file.as_raw_fd(), found.as_mut_ptr()).into())?;
        found.assume_init()
    };
    Ok(FileFacts {
        mode: found.st_mode,
        device: found.st_dev,
        inode: found.st_ino,
        links: found.st_nlink as u64,
        node: (libc::major(found.st_rdev), libc::minor(found.st_rdev)),
    })
}

/// Returns the number that identifies the type of a file system.
pub(crate) fn file_system(file: &OwnedFd) -> Result<i64, Errno> {
    let mut found = MaybeUninit::<libc::statfs>::zeroed();
    // SAFETY: the structure is valid for writing, and all zeroes are valid for it.
    let found = unsafe {
        checked(libc::fstatfs(file.as_raw_fd(), found.as_mut_ptr()).into())?;
        found.assume_init()
    };
    Ok(found.f_type as i64)
}

/// Reads a link: the one at `name`, or `directory` itself if it is a link and `name` is empty.
pub(crate) fn read_link(directory: RawFd, name: &CStr) -> Result<Vec<u8>, Errno> {
    let mut text = vec![0_u8; libc::PATH_MAX as usize + 64];
    // SAFETY: the kernel writes at most `len` bytes.
    let length = checked(unsafe {
        libc::readlinkat(
            directory,
            name.as_ptr(),
            text.as_mut_ptr().cast(),
            text.len(),
        ) as libc::c_long
    })? as usize;
    if length == text.len() {
        return Err(libc::ENAMETOOLONG);
    }
    text.truncate(length);
    Ok(text)
}

/// Checks a right of the calling thread to an open file, by the ordinary permissions.
pub(crate) fn check_access(file: &OwnedFd, mode: i32) -> Result<(), Errno> {
    // SAFETY: the text ends in NUL.
    checked(unsafe {
        libc::syscall(
            libc::SYS_faccessat2,
            file.as_raw_fd(),
            c"".as_ptr(),
            mode,
            libc::AT_EMPTY_PATH | libc::AT_EACCESS,
        )
    })
    .map(drop)
}

pub(crate) fn make_directory(parent: RawFd, name: &CStr, mode: u32) -> Result<(), Errno> {
    // SAFETY: the name ends in NUL.
    checked(unsafe { libc::mkdirat(parent, name.as_ptr(), mode) }.into()).map(drop)
}

pub(crate) fn make_node(parent: RawFd, name: &CStr, mode: u32) -> Result<(), Errno> {
    // SAFETY: the name ends in NUL.
    checked(unsafe { libc::mknodat(parent, name.as_ptr(), mode, 0) }.into()).map(drop)
}

pub(crate) fn make_link(target: &CStr, parent: RawFd, name: &CStr) -> Result<(), Errno> {
    // SAFETY: both texts end in NUL.
    checked(unsafe { libc::symlinkat(target.as_ptr(), parent, name.as_ptr()) }.into()).map(drop)
}

pub(crate) fn unlink(parent: RawFd, name: &CStr, flags: i32) -> Result<(), Errno> {
    // SAFETY: the name ends in NUL.
    checked(unsafe { libc::unlinkat(parent, name.as_ptr(), flags) }.into()).map(drop)
}

pub(crate) fn rename(from: (RawFd, &CStr), to: (RawFd, &CStr), flags: u32) -> Result<(), Errno> {
    // SAFETY: both names end in NUL.
    checked(unsafe {
        libc::syscall(
            libc::SYS_renameat2,
            from.0,
            from.1.as_ptr(),
            to.0,
            to.1.as_ptr(),
            flags,
        )
    })
    .map(drop)
}

pub(crate) fn hard_link(from: (RawFd, &CStr), to: (RawFd, &CStr), flags: i32) -> Result<(), Errno> {
    // SAFETY: both names end in NUL.
    checked(unsafe { libc::linkat(from.0, from.1.as_ptr(), to.0, to.1.as_ptr(), flags) }.into())
        .map(drop)
}

pub(crate) fn truncate(path: &CStr, length: i64) -> Result<(), Errno> {
    // SAFETY: the path ends in NUL.
    checked(unsafe { libc::truncate(path.as_ptr(), length) }.into()).map(drop)
}

pub(crate) fn change_mode(path: &CStr, mode: u32) -> Result<(), Errno> {
    // SAFETY: the path ends in NUL.
    checked(unsafe { libc::chmod(path.as_ptr(), mode) }.into()).map(drop)
}

pub(crate) fn change_owner(file: &OwnedFd, user: u32, group: u32) -> Result<(), Errno> {
    let name = c"".as_ptr();
    checked(
        // SAFETY: the name ends in NUL.
        unsafe { libc::fchownat(file.as_raw_fd(), name, user, group, libc::AT_EMPTY_PATH) }.into(),
    )
    .map(drop)
}

/// Sets times of access and modification; `None` means now.
pub(crate) fn change_times(
    file: &OwnedFd,
    times: Option<&[libc::timespec; 2]>,
) -> Result<(), Errno> {
    let times = times.map_or(std::ptr::null(), |times| times.as_ptr());
    checked(
        // SAFETY: the name ends in NUL, and `times` is null or two structures.
        unsafe { libc::utimensat(file.as_raw_fd(), c"".as_ptr(), times, libc::AT_EMPTY_PATH) }
            .into(),
    )
    .map(drop)
}

pub(crate) fn set_attribute(
    path: &CStr,
    name: &CStr,
    value: &[u8],
    flags: i32,
) -> Result<(), Errno> {
    checked(
        // SAFETY: both texts end in NUL, and the kernel reads `len` bytes of the value.
        unsafe {
            libc::setxattr(
                path.as_ptr(),
                name.as_ptr(),
                value.as_ptr().cast(),
                value.len(),
                flags,
            )
        }
        .into(),
    )
    .map(drop)
}

pub(crate) fn remove_attribute(path: &CStr, name: &CStr) -> Result<(), Errno> {
    // SAFETY: both texts end in NUL.
    checked(unsafe { libc::removexattr(path.as_ptr(), name.as_ptr()) }.into()).map(drop)
}

/// Connects a socket to an address that was copied from the process.
pub(crate) fn connect(socket: &OwnedFd, address: &[u8]) -> Result<(), Errno> {
    checked(
        // SAFETY: the kernel reads `len` bytes of the address.
        unsafe {
            libc::connect(
                socket.as_raw_fd(),
                address.as_ptr().cast(),
                address.len() as libc::socklen_t,
            )
        }
        .into(),
    )
    .map(drop)
}

pub(crate) fn bind(socket: &OwnedFd, address: &[u8]) -> Result<(), Errno> {
    checked(
        // SAFETY: the kernel reads `len` bytes of the address.
        unsafe {
            libc::bind(
                socket.as_raw_fd(),
                address.as_ptr().cast(),
                address.len() as libc::socklen_t,
            )
        }
        .into(),
    )
    .map(drop)
}

pub(crate) fn listen(socket: &OwnedFd, backlog: i32) -> Result<(), Errno> {
    // SAFETY: the call takes no pointer.
    checked(unsafe { libc::listen(socket.as_raw_fd(), backlog) }.into()).map(drop)
}

/// Returns the address that a socket is bound to, in the kernel's form.
pub(crate) fn local_address(socket: &OwnedFd) -> Result<Vec<u8>, Errno> {
    let mut address = vec![0_u8; size_of::<libc::sockaddr_storage>()];
    let mut length = address.len() as libc::socklen_t;
    checked(
        // SAFETY: the kernel writes at most `length` bytes.
        unsafe {
            libc::getsockname(
                socket.as_raw_fd(),
                address.as_mut_ptr().cast(),
                &raw mut length,
            )
        }
        .into(),
    )?;
    address.truncate(length as usize);
    Ok(address)
}

/// Returns a number that is an option of a socket.
pub(crate) fn socket_option(socket: &OwnedFd, level: i32, option: i32) -> Result<i32, Errno> {
    let mut value = 0_i32;
    let mut length = size_of::<i32>() as libc::socklen_t;
    checked(
        // SAFETY: the kernel writes at most `length` bytes.
        unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                level,
                option,
                (&raw mut value).cast(),
                &raw mut length,
            )
        }
        .into(),
    )
    .map(|_| value)
}

/// Sets the longest time that sending and connecting take, in microseconds, and returns the one before. Zero is no limit.
pub(crate) fn limit_sending(socket: &OwnedFd, time: libc::timeval) -> Result<libc::timeval, Errno> {
    let mut before = libc::timeval {
        tv_sec: 0,
        tv_usec: 0,
    };
    let mut length = size_of::<libc::timeval>() as libc::socklen_t;
    // SAFETY: both structures are valid and have the length that is passed with them.
    unsafe {
        let option = (&raw mut before).cast();
        let number = socket.as_raw_fd();
        checked(
            libc::getsockopt(
                number,
                libc::SOL_SOCKET,
                libc::SO_SNDTIMEO,
                option,
                &raw mut length,
            )
            .into(),
        )?;
        checked(
            libc::setsockopt(
                number,
                libc::SOL_SOCKET,
                libc::SO_SNDTIMEO,
                (&raw const time).cast(),
                length,
            )
            .into(),
        )?;
    }
    Ok(before)
}

/// Returns the status flags of an open file.
pub(crate) fn status_flags(file: &OwnedFd) -> Result<i32, Errno> {
    // SAFETY: the call takes no pointer.
    checked(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETFL) }.into())
        .map(|flags| flags as i32)
}

/// Sets the status flags of an open file.
pub(crate) fn set_status_flags(file: &OwnedFd, flags: i32) -> Result<(), Errno> {
    // SAFETY: the call takes no pointer.
    checked(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFL, flags) }.into()).map(drop)
}

/// Returns the number of the terminal whose controlling side `file` is.
pub(crate) fn terminal_number(file: &OwnedFd) -> Result<u32, Errno> {
    let mut number: libc::c_uint = 0;
    // SAFETY: the kernel writes one number.
    checked(unsafe { libc::ioctl(file.as_raw_fd(), libc::TIOCGPTN, &raw mut number) }.into())
        .map(|_| number)
}

/// Gives the calling thread a working directory and a file mode mask of its own.
pub(crate) fn unshare_directory() -> Result<(), Errno> {
    // SAFETY: the call takes no pointer.
    checked(unsafe { libc::unshare(libc::CLONE_FS) }.into()).map(drop)
}

/// Sets the file mode mask of the thread.
pub(crate) fn set_mask(mask: u32) {
    // SAFETY: the call takes no pointer and cannot fail.
    unsafe { libc::umask(mask) };
}

/// Changes the working directory of the thread.
pub(crate) fn enter(directory: RawFd) -> Result<(), Errno> {
    // SAFETY: the call takes no pointer.
    checked(unsafe { libc::fchdir(directory) }.into()).map(drop)
}

/// The user of the process.
pub(crate) fn user() -> u32 {
    // SAFETY: the call cannot fail.
    unsafe { libc::geteuid() }
}

const CAPABILITY_VERSION: u32 = 0x2008_0522;

#[repr(C)]
struct CapabilityHeader {
    version: u32,
    pid: i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct CapabilityWords {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// Sets the effective and permitted capabilities of the thread; the inheritable ones become empty. Safe between fork and
/// exec.
pub(crate) fn set_capabilities(effective: u64, permitted: u64) -> Result<(), Errno> {
    let header = CapabilityHeader {
        version: CAPABILITY_VERSION,
        pid: 0,
    };
    let word = |shift: u32| CapabilityWords {
        effective: (effective >> shift) as u32,
        permitted: (permitted >> shift) as u32,
        inheritable: 0,
    };
    let words = [word(0), word(32)];
    // SAFETY: the structures have the form of this version.
    checked(unsafe { libc::syscall(libc::SYS_capset, &raw const header, words.as_ptr()) }).map(drop)
}

/// The capabilities of this process when it started.
pub(crate) fn held_capabilities() -> u64 {
    static HELD: OnceLock<u64> = OnceLock::new();
    *HELD.get_or_init(|| {
        let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let value = text.lines().find_map(|line| line.strip_prefix("CapPrm:"));
        value
            .and_then(|value| u64::from_str_radix(value.trim(), 16).ok())
            .unwrap_or(0)
    })
}

/// Removes every capability that is not in `kept` for good. Safe between fork and exec.
pub(crate) fn drop_capabilities(kept: u64) -> Result<(), Errno> {
    // SAFETY: the calls take no pointers.
    unsafe {
        libc::prctl(
            libc::PR_CAP_AMBIENT,
            libc::PR_CAP_AMBIENT_CLEAR_ALL,
            0,
            0,
            0,
        );
        for capability in 0..64 {
            let is_present = libc::prctl(libc::PR_CAPBSET_READ, capability, 0, 0, 0) == 1;
            if kept & (1 << capability) != 0 || !is_present {
                continue;
            }
            checked(libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0).into())?;
        }
    }
    set_capabilities(kept, kept)
}

/// Sets the user, group and groups for files, for the calling thread only.
pub(crate) fn act_as(user: u32, group: u32, groups: &[u32]) -> Result<(), Errno> {
    // SAFETY: the list is valid for its length; the raw calls change this thread alone.
    unsafe {
        checked(libc::syscall(
            libc::SYS_setgroups,
            groups.len(),
            groups.as_ptr(),
        ))?;
        libc::syscall(libc::SYS_setfsgid, group);
        libc::syscall(libc::SYS_setfsuid, user);
        // These calls return the value before; asking again with an invalid one returns the present value.
        let now = |call| libc::syscall(call, u32::MAX) as u32;
        if now(libc::SYS_setfsgid) != group || now(libc::SYS_setfsuid) != user {
            return Err(libc::EPERM);
        }
    }
    Ok(())
}

/// Sets a limit of the calling process. Safe between fork and exec.
pub(crate) fn limit(resource: libc::__rlimit_resource_t, most: u64) -> Result<(), Errno> {
    let mut present = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the structures are valid and live across both calls.
    unsafe {
        checked(libc::getrlimit(resource, &raw mut present).into())?;
        let most = most.min(present.rlim_max);
        let limit = libc::rlimit {
            rlim_cur: most,
            rlim_max: most,
        };
        checked(libc::setrlimit(resource, &raw const limit).into()).map(drop)
    }
}

/// Sends a byte. Safe between fork and exec.
pub(crate) fn send_byte(socket: RawFd, byte: u8) {
    // SAFETY: the kernel reads one byte. A failure is found by the receiver.
    unsafe { libc::send(socket, (&raw const byte).cast(), 1, libc::MSG_NOSIGNAL) };
}

/// The space for one descriptor in a message, aligned as the kernel requires.
#[repr(C, align(8))]
struct ControlSpace([u8; 32]);

/// Sends a byte together with a descriptor. Safe between fork and exec.
pub(crate) fn send_descriptor(socket: RawFd, byte: u8, descriptor: RawFd) -> Result<(), Errno> {
    let mut part = libc::iovec {
        iov_base: (&raw const byte).cast_mut().cast(),
        iov_len: 1,
    };
    let mut space = ControlSpace([0; 32]);
    // SAFETY: the space is larger than one header with one descriptor, and all pointers live as long as the call.
    unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = (&raw mut space).cast();
        message.msg_controllen = libc::CMSG_SPACE(size_of::<RawFd>() as u32) as _;
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(size_of::<RawFd>() as u32) as _;
        libc::CMSG_DATA(header)
            .cast::<RawFd>()
            .write_unaligned(descriptor);
        checked(libc::sendmsg(socket, &raw const message, libc::MSG_NOSIGNAL) as libc::c_long)
            .map(drop)
    }
}

/// Receives a byte and the descriptor that may come with it; `None` when nothing is left.
pub(crate) fn receive_byte(socket: &OwnedFd) -> Option<(u8, Option<OwnedFd>)> {
    let mut byte = 0_u8;
    let mut part = libc::iovec {
        iov_base: (&raw mut byte).cast(),
        iov_len: 1,
    };
    let mut space = ControlSpace([0; 32]);
    // SAFETY: all pointers live as long as the call, and the kernel fills in at most the space it is given.
    unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = (&raw mut space).cast();
        message.msg_controllen = size_of::<ControlSpace>() as _;
        let flags = libc::MSG_CMSG_CLOEXEC | libc::MSG_DONTWAIT;
        if libc::recvmsg(socket.as_raw_fd(), &raw mut message, flags) != 1 {
            return None;
        }
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        let descriptor =
            (!header.is_null() && (*header).cmsg_type == libc::SCM_RIGHTS).then(|| {
                OwnedFd::from_raw_fd(libc::CMSG_DATA(header).cast::<RawFd>().read_unaligned())
            });
        Some((byte, descriptor))
    }
}

/// Returns two connected sockets for single messages.
pub(crate) fn message_pair() -> Result<(OwnedFd, OwnedFd), Errno> {
    let mut pair = [0; 2];
    // SAFETY: the kernel writes two descriptors, which belong to this process alone.
    unsafe {
        let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
        checked(libc::socketpair(libc::AF_UNIX, kind, 0, pair.as_mut_ptr()).into())?;
        Ok((OwnedFd::from_raw_fd(pair[0]), OwnedFd::from_raw_fd(pair[1])))
    }
}

/// Closes a descriptor between fork and exec.
pub(crate) fn close(descriptor: RawFd) {
    // SAFETY: the caller made the descriptor and uses it no more.
    unsafe { libc::close(descriptor) };
}

/// Reports whether the calling process may send signals to another one.
pub(crate) fn may_signal(process: u32) -> bool {
    // SAFETY: signal 0 only checks the permission.
    unsafe { libc::kill(process as libc::pid_t, 0) == 0 }
}
