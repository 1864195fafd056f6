//! Mechanisms that tests disable one at a time, to see that the tests notice. Releases contain none of this: without the
//! feature `mutations` every mechanism is on.

/// Reports whether a test has disabled this mechanism.
#[cfg(not(feature = "mutations"))]
pub(crate) const fn is_disabled(_mechanism: &str) -> bool {
    false
}

/// Reports whether a test has disabled this mechanism.
#[cfg(feature = "mutations")]
pub(crate) fn is_disabled(mechanism: &str) -> bool {
    static DISABLED: std::sync::LazyLock<Option<String>> =
        std::sync::LazyLock::new(|| std::env::var("PINION_SANDBOX_WITHOUT").ok());
    DISABLED.as_deref() == Some(mechanism)
}
