//! Sizes, limits and counts.

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Formats a size with one decimal: `512 B`, `1.5 KB`, `4.5 MB`. A KB has 1024 bytes.
pub fn size(bytes: u64) -> String {
    match bytes {
        0..KIB => format!("{bytes} B"),
        KIB..MIB => format!("{:.1} KB", bytes as f64 / KIB as f64),
        _ => format!("{:.1} MB", bytes as f64 / MIB as f64),
    }
}

/// Formats a limit, or a size beyond one, in whole units, rounded down: `100 bytes`, `16 KiB`, `64 MiB`.
pub fn limit(bytes: u64) -> String {
    match bytes {
        0..KIB => format!("{bytes} bytes"),
        KIB..MIB => format!("{} KiB", bytes / KIB),
        _ => format!("{} MiB", bytes / MIB),
    }
}

/// Formats a number of things whose plural ends in "s": `1 line`, `2 lines`.
pub fn count(number: usize, noun: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_units() {
        for (bytes, as_size, as_limit) in [
            (0, "0 B", "0 bytes"),
            (1023, "1023 B", "1023 bytes"),
            (1536, "1.5 KB", "1 KiB"),
            (64 << 20, "64.0 MB", "64 MiB"),
        ] {
            assert_eq!(size(bytes), as_size);
            assert_eq!(limit(bytes), as_limit);
        }
        assert_eq!(
            [0, 1, 2].map(|n| count(n, "line")),
            ["0 lines", "1 line", "2 lines"]
        );
    }
}
