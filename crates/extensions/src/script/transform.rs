//! TypeScript to JavaScript, and what a source says about itself on the way.

use std::path::Path;

use oxc::allocator::Allocator;
use oxc::ast::ast::{ImportDeclarationSpecifier, Program, Statement};
use oxc::codegen::Codegen;
use oxc::parser::{ParseOptions, Parser};
use oxc::semantic::SemanticBuilder;
use oxc::span::SourceType;
use oxc::syntax::module_record::{ExportImportName, ModuleRecord};
use oxc::transformer::{TransformOptions, Transformer};
use serde::{Deserialize, Serialize};

use super::packages::Package;

/// How a source is meant to be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Kind {
    /// With `import` and `export`.
    Module,
    /// With `require` and `module.exports`.
    CommonJs,
    /// Data.
    Json,
}

/// Stands among wanted names for all names there are.
pub(crate) const EVERYTHING: &str = "*";

/// The names wanted of each module.
pub(crate) type Imports = Vec<(String, Vec<String>)>;

/// A source, ready for the engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Transformed {
    pub(crate) code: String,
    pub(crate) facts: Facts,
}

/// What the loader must know of a source besides its code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Facts {
    pub(crate) kind: Kind,
    /// The names it wants of each module it imports.
    pub(crate) imports: Imports,
    /// Whether it uses `require` although it is a module.
    pub(crate) uses_require: bool,
}

impl Facts {
    fn plain(kind: Kind) -> Self {
        Self {
            kind,
            imports: Vec::new(),
            uses_require: false,
        }
    }
}

/// Makes `source`, which was read from `path`, ready for the engine. The error is a message.
pub(crate) fn transform(path: &Path, source: &str) -> Result<Transformed, String> {
    let ending = path
        .extension()
        .and_then(|ending| ending.to_str())
        .unwrap_or_default();
    let given = match ending {
        "json" => {
            return Ok(Transformed {
                code: source.to_owned(),
                facts: Facts::plain(Kind::Json),
            });
        }
        "node" => {
            return Err(format!(
                "{}: native add-ons are not supported",
                path.display()
            ));
        }
        "cjs" | "cts" => Some(Kind::CommonJs),
        "mjs" | "mts" => Some(Kind::Module),
        _ => Package::around(path).and_then(|package| match package.kind() {
            Some("module") => Some(Kind::Module),
            _ => None,
        }),
    };
    let typescript = !matches!(ending, "js" | "mjs" | "cjs");
    let installed = path
        .components()
        .any(|part| part.as_os_str() == "node_modules");
    if !typescript
        && (given == Some(Kind::CommonJs)
            || given.is_none() && installed && !looks_like_module(source))
    {
        return Ok(Transformed {
            code: source.to_owned(),
            facts: Facts::plain(Kind::CommonJs),
        });
    }

    let allocator = Allocator::default();
    let source_type = match ending {
        "tsx" => SourceType::tsx(),
        "jsx" => SourceType::jsx(),
        "js" | "mjs" => SourceType::unambiguous(),
        "cts" => SourceType::ts().with_script(true),
        _ => SourceType::ts(),
    };
    let options = ParseOptions {
        allow_return_outside_function: true,
        ..ParseOptions::default()
    };
    let parsed = Parser::new(&allocator, source, source_type)
        .with_options(options)
        .parse();
    if parsed.panicked || !parsed.diagnostics.is_empty() {
        return Err(first_error(path, source, &parsed.diagnostics));
    }
    let mut program = parsed.program;
    let is_module = parsed.module_record.has_module_syntax;
    let scoping = SemanticBuilder::new()
        .with_excess_capacity(2.0)
        .with_enum_eval(true)
        .build(&program)
        .semantic
        .into_scoping();
    let uses = |wanted: &[&str]| {
        scoping
            .root_unresolved_references()
            .keys()
            .any(|name| wanted.contains(&name.as_str()))
    };
    let kind = given.unwrap_or_else(|| {
        let speaks_common = uses(&["module", "exports"]);
        if !is_module && (speaks_common || installed) {
            Kind::CommonJs
        } else {
            Kind::Module
        }
    });
    let mut prelude = String::new();
    let mut uses_require = false;
    if kind == Kind::Module {
        for (name, value) in [
            ("require", "import.meta.require"),
            ("__filename", "import.meta.filename"),
            ("__dirname", "import.meta.dirname"),
        ] {
            if uses(&[name]) {
                uses_require |= name == "require";
                prelude.push_str(&format!("const {name} = {value}; "));
            }
        }
        if uses(&["module", "exports"]) {
            prelude.push_str("const module = { exports: {} }, exports = module.exports; ");
        }
    }
    let mut imports = re_exported(&parsed.module_record);
    let code = if typescript || ending == "jsx" {
        let done = Transformer::new(&allocator, path, &TransformOptions::default())
            .build_with_scoping(scoping, &mut program);
        if !done.diagnostics.is_empty() {
            return Err(first_error(path, source, &done.diagnostics));
        }
        Codegen::new().build(&program).code
    } else {
        source.to_owned()
    };
    imported(&program, &mut imports);
    if !parsed.module_record.dynamic_imports.is_empty() {
        // What an `import()` may ask for is not known before it is made.
        for (_, names) in &mut imports {
            names.push(EVERYTHING.to_owned());
        }
    }
    let code = match code.strip_prefix("#!") {
        Some(rest) => format!("{prelude}//{rest}"),
        None => prelude + &code,
    };
    Ok(Transformed {
        code,
        facts: Facts {
            kind,
            imports,
            uses_require,
        },
    })
}

/// Whether a line begins as only modules do. Saves parsing what is plainly not one.
fn looks_like_module(source: &str) -> bool {
    source.contains("import.meta")
        || ["import", "export"].iter().any(|word| {
            source.match_indices(word).any(|(at, _)| {
                let before = source[..at].trim_end_matches([' ', '\t']);
                let starts = before.is_empty() || before.ends_with(['\n', ';', '}', '/']);
                starts && source[at + word.len()..].starts_with([' ', '{', '*', '"', '\''])
            })
        })
}

fn re_exported(record: &ModuleRecord<'_>) -> Imports {
    let mut imports = Vec::new();
    let entries = record.indirect_export_entries.iter();
    for entry in entries.chain(&record.star_export_entries) {
        let Some(module) = entry.module_request.as_ref().filter(|_| !entry.is_type) else {
            continue;
        };
        let name = match &entry.import_name {
            ExportImportName::Name(name) => name.name.as_str(),
            _ => EVERYTHING,
        };
        note(&mut imports, module.name.as_str(), name);
    }
    imports
}

fn imported(program: &Program<'_>, imports: &mut Imports) {
    for statement in &program.body {
        let Statement::ImportDeclaration(import) = statement else {
            continue;
        };
        for specifier in import.specifiers.iter().flatten() {
            match specifier {
                ImportDeclarationSpecifier::ImportSpecifier(named) => {
                    note(
                        imports,
                        import.source.value.as_str(),
                        named.imported.name().as_str(),
                    );
                }
                ImportDeclarationSpecifier::ImportDefaultSpecifier(_) => {
                    note(imports, import.source.value.as_str(), "default");
                }
                ImportDeclarationSpecifier::ImportNamespaceSpecifier(_) => {
                    note(imports, import.source.value.as_str(), EVERYTHING);
                }
            }
        }
    }
}

fn note(imports: &mut Imports, module: &str, name: &str) {
    match imports.iter_mut().find(|(known, _)| known == module) {
        Some((_, names)) => names.push(name.to_owned()),
        None => imports.push((module.to_owned(), vec![name.to_owned()])),
    }
}

fn first_error(path: &Path, source: &str, errors: &oxc::diagnostics::Diagnostics) -> String {
    let Some(error) = errors.iter().next() else {
        return format!("{}: not readable as a script", path.display());
    };
    let at = error
        .labels
        .iter()
        .next()
        .map_or(0, |label| label.offset() as usize);
    let before = source.get(..at).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    let column = before
        .rsplit('\n')
        .next()
        .unwrap_or_default()
        .chars()
        .count()
        + 1;
    format!("{} ({}:{line}:{column})", error.message, path.display())
}
