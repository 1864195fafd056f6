//! Runs a program under limits. The shell that starts it sets them, so that neither the program nor the test changes.

use std::ffi::OsString;

use crate::Program;

/// A limit of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Size of any file it writes, in units of 512 bytes; a write beyond fails as on a full disk.
    FileBlocks(u64),
    /// Files open at the same time.
    OpenFiles(u64),
    /// Address space, in KiB.
    AddressSpace(u64),
}

/// Returns the same program, started under limits.
pub fn limited(program: &Program, limits: &[Limit]) -> Program {
    let mut script = String::new();
    for limit in limits {
        script.push_str(&match limit {
            // Without the trap the signal would end the process before it can see the error.
            Limit::FileBlocks(blocks) => format!("trap '' XFSZ; ulimit -f {blocks}; "),
            Limit::OpenFiles(files) => format!("ulimit -n {files}; "),
            Limit::AddressSpace(kib) => format!("ulimit -v {kib}; "),
        });
    }
    script.push_str("exec \"$@\"");
    let mut limited = program.clone();
    limited.command = ["sh", "-c", &script, "sh"].map(OsString::from).into();
    limited.command.extend(program.command.iter().cloned());
    limited
}
