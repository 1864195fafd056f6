//! The identity of a span as other programs receive it: the `traceparent` of the W3C.

use std::fmt;

/// A trace, a span in it, and the decision to record it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceContext {
    pub trace: [u8; 16],
    pub span: [u8; 8],
    pub sampled: bool,
}

impl TraceContext {
    /// Parses `00-<32 hex>-<16 hex>-<2 hex>`. Later versions may add fields behind these four.
    pub fn parse(text: &str) -> Option<Self> {
        let mut fields = text.trim().split('-');
        let version = byte(fields.next()?)?;
        let trace = digits::<16>(fields.next()?)?;
        let span = digits::<8>(fields.next()?)?;
        let flags = byte(fields.next()?)?;
        let has_more = fields.next().is_some();
        let is_zero = trace == [0; 16] || span == [0; 8];
        if version == 0xff || version == 0 && has_more || is_zero {
            return None;
        }
        Some(Self {
            trace,
            span,
            sampled: flags & 1 == 1,
        })
    }

    /// Creates the context of a new span: a child of `parent`, or the root of a new trace.
    pub(crate) fn new(parent: Option<Self>, sampled: impl FnOnce(&[u8; 16]) -> bool) -> Self {
        match parent {
            Some(parent) => Self {
                span: random(),
                ..parent
            },
            None => {
                let trace = random();
                Self {
                    trace,
                    span: random(),
                    sampled: sampled(&trace),
                }
            }
        }
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (trace, span) = (
            pinion_text::hex::encode(&self.trace),
            pinion_text::hex::encode(&self.span),
        );
        write!(f, "00-{trace}-{span}-0{}", u8::from(self.sampled))
    }
}

fn byte(text: &str) -> Option<u8> {
    digits::<1>(text).map(|[byte]| byte)
}

/// Reads bytes in lower-case hexadecimal digits, which the standard requires.
fn digits<const COUNT: usize>(text: &str) -> Option<[u8; COUNT]> {
    let is_digit = |digit: u8| matches!(digit, b'0'..=b'9' | b'a'..=b'f');
    if !text.bytes().all(is_digit) {
        return None;
    }
    pinion_text::hex::decode(text)?.try_into().ok()
}

/// Returns random bytes that are not all zero, which would mean "no span".
fn random<const COUNT: usize>() -> [u8; COUNT] {
    let mut bytes = [0; COUNT];
    // Without random numbers from the system the ids are still valid, and only useless.
    let _ = getrandom::fill(&mut bytes);
    if bytes == [0; COUNT] {
        bytes[COUNT - 1] = 1;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const EXAMPLE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_context_is_read_and_written() {
        let context = TraceContext::parse(EXAMPLE).unwrap();
        assert!(context.sampled);
        assert_eq!(context.to_string(), EXAMPLE);
        let child = TraceContext::new(Some(context), |_| false);
        assert_eq!(
            (child.trace, child.sampled),
            (context.trace, context.sampled)
        );
        assert_ne!(child.span, context.span);
        let root = TraceContext::new(None, |_| false);
        assert_ne!(root.trace, context.trace);
        assert!(!root.sampled);
    }

    #[test]
    fn later_versions_may_have_more_fields() {
        let later = EXAMPLE.replacen("00", "cc", 1) + "-what-follows";
        assert!(TraceContext::parse(&later).is_some());
        assert!(TraceContext::parse(&later.replacen("cc", "00", 1)).is_none());
        assert!(TraceContext::parse(&EXAMPLE.replacen("00", "ff", 1)).is_none());
    }

    #[test]
    fn what_is_not_a_context_is_refused() {
        for text in [
            "",
            "00",
            &EXAMPLE.to_uppercase(),
            &EXAMPLE.replace("b7ad6b7169203331", "0000000000000000"),
            &EXAMPLE.replace("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32)),
            &EXAMPLE.replace("-01", ""),
            &EXAMPLE.replace("0af7", "0af"),
            &EXAMPLE.replace("0af7", "0ag7"),
        ] {
            assert_eq!(TraceContext::parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_context_survives_a_round_trip(trace: [u8; 16], span: [u8; 8], sampled: bool) {
            prop_assume!(trace != [0; 16] && span != [0; 8]);
            let context = TraceContext { trace, span, sampled };
            prop_assert_eq!(TraceContext::parse(&context.to_string()), Some(context));
        }

        #[test]
        fn any_text_is_read_without_a_panic(text in "\\PC{0,80}") {
            let _ = TraceContext::parse(&text);
        }
    }
}
