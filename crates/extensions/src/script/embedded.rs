//! The JavaScript modules compiled into the binary.

/// One module of `js/`.
pub(crate) struct Embedded {
    /// `pinion:` and the path below `js/`.
    pub(crate) name: &'static str,
    pub(crate) code: &'static [u8],
    /// Each exported name. For a re-export also the module it comes from and its name there.
    exports: &'static [(&'static str, &'static str, &'static str)],
    stars: &'static [&'static str],
}

static MODULES: &[Embedded] = include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

pub(crate) fn find(name: &str) -> Option<&'static Embedded> {
    let index = MODULES.binary_search_by(|module| module.name.cmp(name));
    index.ok().map(|index| &MODULES[index])
}

/// Returns every module, for tests.
#[cfg(test)]
pub(crate) fn all() -> impl Iterator<Item = &'static Embedded> {
    MODULES.iter()
}

impl Embedded {
    /// Reports whether the module exports `wanted`, itself or through a star export.
    pub(crate) fn exports(&self, wanted: &str) -> bool {
        self.listed().any(|name| name == wanted)
            || wanted != "default"
                && self.stars.iter().any(|star| {
                    super::resolve::internal(self.name, star)
                        .and_then(|name| find(&name))
                        .is_some_and(|module| module.exports(wanted))
                })
    }

    /// Returns the names that the module lists itself.
    pub(crate) fn listed(&self) -> impl Iterator<Item = &'static str> {
        self.exports.iter().map(|(name, ..)| *name)
    }

    /// Returns the module that defines `wanted`, and its name there; `None` if this module defines it or does not list
    /// it.
    pub(crate) fn origin(&self, wanted: &str) -> Option<(&'static Self, &'static str)> {
        let index = self
            .exports
            .binary_search_by(|(name, ..)| (*name).cmp(wanted));
        let (_, from, inner) = self.exports[index.ok()?];
        let module = find(from)?;
        Some(module.origin(inner).unwrap_or((module, inner)))
    }
}

#[cfg(test)]
mod tests {
    use crate::script::{Script, ScriptOptions};

    #[tokio::test]
    async fn every_module_exports_its_listed_names() {
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
