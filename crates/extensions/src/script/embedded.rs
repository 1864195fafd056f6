//! The modules compiled into the program.

/// One module of `js/`.
pub(crate) struct Embedded {
    /// `pinion:` and its place below `js/`.
    pub(crate) name: &'static str,
    /// Its bytecode.
    pub(crate) code: &'static [u8],
    /// Each name it exports; for what it only passes on, the module it comes from and the name there.
    exports: &'static [(&'static str, &'static str, &'static str)],
    stars: &'static [&'static str],
}

static MODULES: &[Embedded] = include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

/// The module called `name`.
pub(crate) fn find(name: &str) -> Option<&'static Embedded> {
    let place = MODULES.binary_search_by(|module| module.name.cmp(name));
    place.ok().map(|place| &MODULES[place])
}

/// Every module, for checks.
#[cfg(test)]
pub(crate) fn all() -> impl Iterator<Item = &'static Embedded> {
    MODULES.iter()
}

impl Embedded {
    /// Whether the module exports `wanted`, itself or through another.
    pub(crate) fn exports(&self, wanted: &str) -> bool {
        self.listed().any(|name| name == wanted)
            || wanted != "default"
                && self.stars.iter().any(|star| {
                    super::resolve::internal(self.name, star)
                        .and_then(|name| find(&name))
                        .is_some_and(|module| module.exports(wanted))
                })
    }

    /// The names the module itself lists.
    pub(crate) fn listed(&self) -> impl Iterator<Item = &'static str> {
        self.exports.iter().map(|(name, ..)| *name)
    }

    /// The module that makes what this one lists as `wanted`, and its name there; `None` when this
    /// one makes it or does not list it.
    pub(crate) fn origin(&self, wanted: &str) -> Option<(&'static Self, &'static str)> {
        let place = self
            .exports
            .binary_search_by(|(name, ..)| (*name).cmp(wanted));
        let (_, from, inner) = self.exports[place.ok()?];
        let module = find(from)?;
        Some(module.origin(inner).unwrap_or((module, inner)))
    }
}

#[cfg(test)]
mod tests {
    use crate::script::{Script, ScriptOptions};

    #[tokio::test]
    async fn every_module_exports_what_is_listed_for_it() {
        let script = Script::start(ScriptOptions::default()).unwrap();
        let generation = script.open_generation().await.unwrap();
        for module in super::all() {
            let name = serde_json::to_string(module.name).unwrap();
            let names = script
                .call(generation, "runtime/entry.names", vec![name])
                .await;
            let names = names.unwrap_or_else(|error| panic!("{}: {error}", module.name));
            let names: Vec<String> = serde_json::from_str(&names).unwrap();
            for name in &names {
                assert!(module.exports(name), "{} exports {name}", module.name);
            }
            for name in module.listed() {
                assert!(
                    names.iter().any(|known| known == name),
                    "{}: {name}",
                    module.name
                );
            }
        }
    }
}
