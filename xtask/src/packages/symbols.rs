//! The oldest system that a binary starts on, from the versions of the symbols it needs.

use std::path::Path;

use crate::shell::output;

/// The glibc that a binary needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Requirements {
    pub major: u32,
    pub minor: u32,
}

/// Relocations in their short form are read by this version and later ones.
const SHORT_RELOCATIONS: Requirements = Requirements {
    major: 2,
    minor: 36,
};

/// Libraries that every system with glibc has.
const LIBRARIES: [&str; 7] = [
    "libc.so",
    "libm.so",
    "libdl.so",
    "libpthread.so",
    "librt.so",
    "libgcc_s.so",
    "ld-linux",
];

/// Reads the requirements of a binary with `objdump`.
pub fn requirements(binary: &Path) -> Result<Requirements, String> {
    let path = binary.to_string_lossy();
    let dump = |flag| {
        let dumped = output(&["objdump", flag, &path]);
        dumped.ok_or_else(|| format!("objdump cannot read {path}; is binutils installed?"))
    };
    let headers = dump("-p")?;
    if let Some(library) = foreign_library(&headers) {
        return Err(format!(
            "{path} needs {library}, which many systems do not have"
        ));
    }
    newest(&headers).ok_or_else(|| format!("{path} names no version of glibc"))
}

fn foreign_library(headers: &str) -> Option<&str> {
    let needed = headers
        .lines()
        .filter_map(|line| line.trim().strip_prefix("NEEDED"));
    let mut names = needed.map(str::trim);
    names.find(|name| !LIBRARIES.iter().any(|known| name.starts_with(known)))
}

fn newest(headers: &str) -> Option<Requirements> {
    let versions = headers.split_whitespace().filter_map(|word| {
        let version = word.strip_prefix("GLIBC_")?;
        if version == "ABI_DT_RELR" {
            return Some(SHORT_RELOCATIONS);
        }
        let mut numbers = version.split('.').map(str::parse);
        Some(Requirements {
            major: numbers.next()?.ok()?,
            minor: numbers.next()?.ok()?,
        })
    });
    versions.max()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADERS: &str = "
  NEEDED               libgcc_s.so.1
  NEEDED               libc.so.6
Version References:
  required from libc.so.6:
    0x09691a75 0x00 07 GLIBC_2.2.5
    0x06969197 0x00 05 GLIBC_2.17
    0x06969189 0x00 03 GLIBC_2.9
";

    #[test]
    fn versions_are_compared_by_number() {
        let of = |major, minor| Some(Requirements { major, minor });
        assert_eq!(newest(HEADERS), of(2, 17));
        let short = format!("{HEADERS} GLIBC_ABI_DT_RELR");
        assert_eq!(newest(&short), of(2, 36));
        assert_eq!(newest(""), None);
    }

    #[test]
    fn other_libraries_are_found() {
        assert_eq!(foreign_library(HEADERS), None);
        let more = HEADERS.replace("libgcc_s.so.1", "libssl.so.3");
        assert_eq!(foreign_library(&more), Some("libssl.so.3"));
    }
}
