//! Replacements for built-in modules that lack a name an extension imports.
//!
//! A missing name would make the whole import fail. An import of such a name therefore gets a module that re-exports
//! the existing names and throws an explanation when a missing one is used.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};

use super::builtins;
use super::embedded::Embedded;
use super::transform::EVERYTHING;

const PREFIX: &str = "pinion:facade/";

/// ModuleResolver of one module, each with the name it is exported under.
type Renamed = Vec<(&'static str, String)>;

/// The replacement modules created so far, by name.
#[derive(Default)]
pub(crate) struct Facades(RefCell<HashMap<String, String>>);

impl Facades {
    /// Returns the name of a module that exports `wanted` of `module`: itself, the one that defines them all, or a
    /// replacement.
    pub(crate) fn covering(&self, module: &Embedded, wanted: &[String]) -> String {
        if let Some(origins) = origins(module, wanted) {
            return self.gathering(module, &origins);
        }
        let mut missing: Vec<&str> = wanted
            .iter()
            .map(String::as_str)
            .filter(|name| *name != EVERYTHING && !module.exports(name))
            .collect();
        if missing.is_empty() {
            return module.name.to_owned();
        }
        missing.sort_unstable();
        missing.dedup();
        let path = module.name.trim_start_matches("pinion:");
        let name = format!("{PREFIX}{path}?{}", missing.join(","));
        self.0
            .borrow_mut()
            .entry(name.clone())
            .or_insert_with(|| source(module, &missing, &builtins::public_name(path)));
        name
    }

    fn gathering(&self, module: &Embedded, origins: &BTreeMap<&'static str, Renamed>) -> String {
        if let Some((origin, names)) = origins.first_key_value()
            && origins.len() == 1
            && names.iter().all(|(inner, name)| inner == name)
        {
            return (*origin).to_owned();
        }
        let mut names: Vec<&str> = origins
            .values()
            .flatten()
            .map(|(_, name)| name.as_str())
            .collect();
        names.sort_unstable();
        names.dedup();
        let path = module.name.trim_start_matches("pinion:");
        let name = format!("{PREFIX}{path}?only={}", names.join(","));
        self.0
            .borrow_mut()
            .entry(name.clone())
            .or_insert_with(|| gathered(origins));
        name
    }

    /// Returns the source of the replacement called `name`.
    pub(crate) fn source(&self, name: &str) -> Option<String> {
        self.0.borrow().get(name).cloned()
    }
}

/// Returns the modules that define the names of `wanted`, if `module` defines none of them itself.
///
/// In that case `module` need not be loaded: many built-in modules only re-export others, and an extension uses few of
/// the names.
fn origins(module: &Embedded, wanted: &[String]) -> Option<BTreeMap<&'static str, Renamed>> {
    let mut origins: BTreeMap<&'static str, Renamed> = BTreeMap::new();
    for name in wanted {
        let (origin, inner) = module.origin(name)?;
        let names = origins.entry(origin.name).or_default();
        // A file may import a name twice: to use it and to re-export it.
        if names.iter().all(|(_, known)| known != name) {
            names.push((inner, name.clone()));
        }
    }
    (!origins.is_empty()).then_some(origins)
}

fn gathered(origins: &BTreeMap<&'static str, Renamed>) -> String {
    let mut text = String::new();
    for (module, names) in origins {
        for (inner, name) in names {
            text.push_str(&format!(
                "export {{ {inner} as {name} }} from {module:?};\n"
            ));
        }
    }
    text
}

fn source(module: &Embedded, missing: &[&str], public: &str) -> String {
    let mut text = format!(
        "import {{ missing }} from \"pinion:runtime/missing\";\nimport * as all from {name:?};\n\
         export * from {name:?};\n",
        name = module.name
    );
    if !missing.contains(&"default") && module.exports("default") {
        text.push_str(&format!("export {{ default }} from {:?};\n", module.name));
    }
    for (at, name) in missing.iter().enumerate() {
        if *name == "default" {
            text.push_str("export default all;\n");
        } else {
            text.push_str(&format!(
                "const missing{at} = missing({public:?}, {name:?});\nexport {{ missing{at} as {} }};\n",
                exported(name)
            ));
        }
    }
    text
}

/// Returns `name` in the form of an export clause.
pub(crate) fn exported(name: &str) -> String {
    if is_identifier(name) {
        name.to_owned()
    } else {
        format!("{name:?}")
    }
}

/// Reports whether `name` can be written without quotes.
pub(crate) fn is_identifier(name: &str) -> bool {
    let mut characters = name.chars();
    characters
        .next()
        .is_some_and(|first| first.is_alphabetic() || matches!(first, '_' | '$'))
        && characters.all(|character| character.is_alphanumeric() || matches!(character, '_' | '$'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::embedded;

    fn covering(wanted: &[&str]) -> String {
        let module = embedded::find("pinion:node/fs").unwrap();
        let wanted: Vec<String> = wanted.iter().map(ToString::to_string).collect();
        Facades::default().covering(module, &wanted)
    }

    #[test]
    fn a_module_that_only_reexports_the_wanted_names_is_not_loaded() {
        let sync = "pinion:node/internal_fs_sync";
        assert_eq!(covering(&["existsSync", "readFileSync"]), sync);
        let gathered = "pinion:facade/node/fs?only=existsSync,promises";
        assert_eq!(covering(&["existsSync", "promises"]), gathered);
        for whole in [
            &[][..],
            &["existsSync", EVERYTHING],
            &["existsSync", "readFile"],
        ] {
            assert_eq!(covering(whole), "pinion:node/fs", "{whole:?}");
        }
        let missing = "pinion:facade/node/fs?readArguments";
        assert_eq!(covering(&["existsSync", "readArguments"]), missing);
    }
}
