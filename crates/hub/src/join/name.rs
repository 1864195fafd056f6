//! The name under which a runtime offers its clips.

use std::path::Path;

/// Returns the provider name of a runtime: `pinixd-<host>-<port>`, with the host in lower case and a dash for every run
/// of characters that are neither ASCII letters nor digits.
pub fn provider_name(host: &str, port: u16) -> String {
    let mut name = String::from("pinixd-");
    for letter in host.trim().chars().flat_map(char::to_lowercase) {
        match letter {
            'a'..='z' | '0'..='9' => name.push(letter),
            _ if name.ends_with('-') => {}
            _ => name.push('-'),
        }
    }
    let end = name.trim_end_matches('-').len();
    name.truncate(end);
    format!("{name}-{port}")
}

/// Returns the name of this machine, or `localhost` if it is not known.
pub fn host_name() -> String {
    let files = ["/proc/sys/kernel/hostname", "/etc/hostname"];
    let read = files
        .iter()
        .find_map(|file| std::fs::read_to_string(file).ok());
    let name = read.unwrap_or_default().trim().to_owned();
    if name.is_empty() {
        "localhost".into()
    } else {
        name
    }
}

/// Returns a number of five digits derived from the directory of a runtime, in place of a port.
pub fn stable_port(root: &Path) -> u16 {
    // FNV-1a is the same in every version of pinion, so the name of a runtime does not change.
    let root = root.as_os_str().as_encoded_bytes();
    let hash = root.iter().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
    });
    let (first, last) = (10_000, u32::from(u16::MAX));
    u16::try_from(first + hash % (last - first + 1)).unwrap_or(u16::MAX)
}
