//! The modules compiled into the program.

/// One module of `js/`.
pub(crate) struct Embedded {
    /// `pinion:` and its place below `js/`.
    pub(crate) name: &'static str,
    /// Its bytecode.
    pub(crate) code: &'static [u8],
    exports: &'static [&'static str],
    stars: &'static [&'static str],
}

static MODULES: &[Embedded] = include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

/// The module called `name`.
pub(crate) fn find(name: &str) -> Option<&'static Embedded> {
    MODULES.iter().find(|module| module.name == name)
}

/// Every module, for checks.
#[cfg(test)]
pub(crate) fn all() -> impl Iterator<Item = &'static Embedded> {
    MODULES.iter()
}

impl Embedded {
    /// Whether the module exports `wanted`, itself or through another.
    pub(crate) fn exports(&self, wanted: &str) -> bool {
        self.exports.contains(&wanted)
            || wanted != "default"
                && self.stars.iter().any(|star| {
                    super::resolve::internal(self.name, star)
                        .and_then(|name| find(&name))
                        .is_some_and(|module| module.exports(wanted))
                })
    }

    /// The names the module itself lists.
    #[cfg(test)]
    pub(crate) fn listed(&self) -> &'static [&'static str] {
        self.exports
    }
}
