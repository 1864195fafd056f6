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
