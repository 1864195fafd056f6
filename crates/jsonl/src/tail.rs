//! Inspection of the end of a file of lines: whole, unterminated or torn.

/// The state of a file's last line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tail {
    /// Empty, or ends with LF.
    Whole,
    /// The last line is valid JSON that lacks only its LF.
    Unterminated,
    /// From this byte on the last line is not valid JSON: a write was cut short.
    Torn {
        /// The length of the valid part, in bytes.
        at: usize,
    },
}

/// Inspects the end of `bytes`.
///
/// A last line that ends in LF but does not parse is torn as well: the next append after a cut must
/// not be joined to it, and some writers put an LF before they continue.
pub fn inspect(bytes: &[u8]) -> Tail {
    if bytes.is_empty() {
        return Tail::Whole;
    }
    let terminated = bytes.last() == Some(&b'\n');
    let body = if terminated {
        &bytes[..bytes.len() - 1]
    } else {
        bytes
    };
    let start = memchr::memrchr(b'\n', body).map_or(0, |at| at + 1);
    let line = &body[start..];
    let valid = line.trim_ascii().is_empty()
        || serde_json::from_slice::<serde::de::IgnoredAny>(line).is_ok();
    match (valid, terminated) {
        (true, true) => Tail::Whole,
        (true, false) => Tail::Unterminated,
        (false, _) => Tail::Torn { at: start },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn tells_whole_unterminated_and_torn_apart() {
        assert_eq!(inspect(b""), Tail::Whole);
        assert_eq!(inspect(b"{\"a\":1}\n"), Tail::Whole);
        assert_eq!(inspect(b"{\"a\":1}\n{\"b\":2}"), Tail::Unterminated);
        assert_eq!(inspect(b"{\"a\":1}\n{\"b\":"), Tail::Torn { at: 8 });
        assert_eq!(inspect(b"{\"a\":1}\n{\"b\":\n"), Tail::Torn { at: 8 });
    }

    proptest! {
        #[test]
        fn a_cut_never_harms_earlier_lines(texts in proptest::collection::vec(any::<String>(), 1..6), cut in any::<proptest::sample::Index>()) {
            let mut bytes = Vec::new();
            let mut starts = vec![0];
            for text in &texts {
                crate::json::append(&mut bytes, &serde_json::json!({ "text": text }));
                bytes.push(b'\n');
                starts.push(bytes.len());
            }
            let cut = cut.index(bytes.len() + 1);
            let start = *starts.iter().rev().find(|&&start| start <= cut).unwrap();
            match inspect(&bytes[..cut]) {
                Tail::Whole => prop_assert_eq!(start, cut),
                Tail::Unterminated => prop_assert_eq!(bytes[cut], b'\n'),
                Tail::Torn { at } => prop_assert_eq!(at, start),
            }
        }
    }
}
