//! Stand-ins for built-in modules that lack a name an extension imports.
//!
//! A missing name would be an error of the whole import. So whoever asks for one gets a module that
//! passes on what there is and explains itself when the rest is used.

use std::cell::RefCell;
use std::collections::HashMap;

use super::builtins;
use super::embedded::Embedded;

const PREFIX: &str = "pinion:facade/";

/// The stand-ins handed out so far, by name.
#[derive(Default)]
pub(crate) struct Facades(RefCell<HashMap<String, String>>);

impl Facades {
    /// The module that gives `wanted` of `module`: itself, or a stand-in.
    pub(crate) fn covering(&self, module: &Embedded, wanted: &[String]) -> String {
        let mut missing: Vec<&str> = wanted
            .iter()
            .map(String::as_str)
            .filter(|name| !module.exports(name))
            .collect();
        if missing.is_empty() {
            return module.name.to_owned();
        }
        missing.sort_unstable();
        missing.dedup();
        let place = module.name.trim_start_matches("pinion:");
        let name = format!("{PREFIX}{place}?{}", missing.join(","));
        self.0
            .borrow_mut()
            .entry(name.clone())
            .or_insert_with(|| source(module, &missing, &builtins::public_name(place)));
        name
    }

    /// The source of the stand-in called `name`.
    pub(crate) fn source(&self, name: &str) -> Option<String> {
        self.0.borrow().get(name).cloned()
    }
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

/// `name` as it may stand in an export clause.
pub(crate) fn exported(name: &str) -> String {
    if is_identifier(name) {
        name.to_owned()
    } else {
        format!("{name:?}")
    }
}

/// Whether `name` can be written without quotes.
pub(crate) fn is_identifier(name: &str) -> bool {
    let mut characters = name.chars();
    characters
        .next()
        .is_some_and(|first| first.is_alphabetic() || matches!(first, '_' | '$'))
        && characters.all(|character| character.is_alphanumeric() || matches!(character, '_' | '$'))
}
