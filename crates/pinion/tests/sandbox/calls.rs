//! System calls by number, as a program that means harm makes them.
#![allow(unsafe_code, reason = "the probes use calls that no library offers")]

use std::ffi::CString;
use std::path::Path;

/// Makes a call and returns its result, or the error number.
pub fn call(number: libc::c_long, arguments: [usize; 6]) -> Result<i64, i32> {
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: the probes pass null or pointers to values that live as long as the call.
    let result = unsafe { libc::syscall(number, a, b, c, d, e, f) };
    if result < 0 {
        Err(std::io::Error::last_os_error().raw_os_error().unwrap_or(0))
    } else {
        Ok(result)
    }
}

/// Fails if a call succeeded, or failed with another error than expected. 0 expects any error.
pub fn refused(
    what: &str,
    number: libc::c_long,
    arguments: [usize; 6],
    expected: i32,
) -> Result<(), String> {
    match call(number, arguments) {
        Ok(value) => Err(format!("{what} returned {value}")),
        Err(error) if expected == 0 || error == expected => Ok(()),
        Err(error) => Err(format!("{what} failed with {error}, not {expected}")),
    }
}

pub fn text(path: impl AsRef<Path>) -> CString {
    CString::new(path.as_ref().to_str().unwrap()).unwrap()
}

/// The address of a text that lives long enough.
pub fn at(text: &CString) -> usize {
    text.as_ptr() as usize
}

/// `-100`: the working directory.
pub const HERE: usize = libc::AT_FDCWD as usize;

/// Makes a call of the 32-bit interface in a child. `None` if the child was killed.
#[cfg(target_arch = "x86_64")]
pub fn foreign_call() -> Option<i32> {
    // SAFETY: the child does nothing but the call and its exit.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            // `getpid` of i386.
            std::arch::asm!("int 0x80", inout("rax") 20 => _);
            libc::_exit(0);
        }
        let mut status = 0;
        libc::waitpid(child, &raw mut status, 0);
        libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status))
    }
}
