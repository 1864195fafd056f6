//! Translates TypeScript to JavaScript and extracts the imports and exports of a source.

use std::path::Path;

use oxc::allocator::Allocator;
use oxc::ast::ast::{
    ArrowFunctionExpression, AwaitExpression, Declaration, ForOfStatement, Function,
    ImportDeclarationSpecifier, Program, Statement, VariableDeclaration, VariableDeclarationKind,
};
use oxc::ast_visit::{Visit, walk};
use oxc::codegen::Codegen;
use oxc::parser::{ParseOptions, Parser};
use oxc::semantic::SemanticBuilder;
use oxc::span::SourceType;
use oxc::syntax::module_record::{ExportImportName, ModuleRecord};
use oxc::syntax::scope::ScopeFlags;
use oxc::transformer::{
    DecoratorOptions, HelperLoaderMode, HelperLoaderOptions, TransformOptions, Transformer,
};
use serde::{Deserialize, Serialize};

use super::packages::Package;

/// The module system of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum SourceKind {
    /// Uses `import` and `export`.
    Module,
    /// Uses `require` and `module.exports`.
    CommonJs,
    /// Data.
    Json,
}

/// Stands for all names in a list of imported names.
pub(crate) const EVERYTHING: &str = "*";

/// The names that a source imports, by module.
pub(crate) type Imports = Vec<(String, Vec<String>)>;

/// A source that is ready for the engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Transformed {
    pub(crate) code: String,
    pub(crate) facts: Facts,
}

/// Facts about a source that the loader needs besides its code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Facts {
    pub(crate) kind: SourceKind,
    /// The names that it imports, by module.
    pub(crate) imports: Imports,
    /// It uses `require` although it is a module.
    pub(crate) uses_require: bool,
    /// The names that a module exports.
    pub(crate) exports: Vec<String>,
    /// The modules of its star exports.
    pub(crate) stars: Vec<String>,
    /// The modules that run before it.
    pub(crate) requests: Vec<String>,
    /// It has an `await` outside of functions.
    pub(crate) awaits: bool,
}

impl Facts {
    fn plain(kind: SourceKind) -> Self {
        Self {
            kind,
            imports: Vec::new(),
            uses_require: false,
            exports: Vec::new(),
            stars: Vec::new(),
            requests: Vec::new(),
            awaits: false,
        }
    }
}

/// Prepares `source`, which was read from `path`, for the engine. The error is a message.
pub(crate) fn transform(path: &Path, source: &str) -> Result<Transformed, String> {
    let ending = path
        .extension()
        .and_then(|ending| ending.to_str())
        .unwrap_or_default();
    let given = match ending {
        "json" => {
            return Ok(Transformed {
                code: source.to_owned(),
                facts: Facts::plain(SourceKind::Json),
            });
        }
        "node" => {
            return Err(format!(
                "{}: native add-ons are not supported",
                path.display()
            ));
        }
        "cjs" | "cts" => Some(SourceKind::CommonJs),
        "mjs" | "mts" => Some(SourceKind::Module),
        _ => Package::around(path).and_then(|package| match package.kind() {
            Some("module") => Some(SourceKind::Module),
            _ => None,
        }),
    };
    let typescript = !matches!(ending, "js" | "mjs" | "cjs");
    let installed = path
        .components()
        .any(|part| part.as_os_str() == "node_modules");
    if !typescript
        && (given == Some(SourceKind::CommonJs)
            || given.is_none() && installed && !looks_like_module(source))
    {
        return Ok(Transformed {
            code: source.to_owned(),
            facts: Facts::plain(SourceKind::CommonJs),
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
    let parse = |source_type| {
        Parser::new(&allocator, source, source_type)
            .with_options(options)
            .parse()
    };
    let mut parsed = parse(source_type);
    let mut given = given;
    if ending == "cts" && is_written_as_module(&parsed.program) {
        // The source is written as a module, in spite of its file extension.
        parsed = parse(SourceType::ts());
        given = Some(SourceKind::Module);
    }
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
            SourceKind::CommonJs
        } else {
            SourceKind::Module
        }
    });
    let mut prelude = String::new();
    let mut uses_require = false;
    if kind == SourceKind::Module {
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
        let done = Transformer::new(&allocator, path, &transform_options())
            .build_with_scoping(scoping, &mut program);
        if !done.diagnostics.is_empty() {
            return Err(first_error(path, source, &done.diagnostics));
        }
        let code = Codegen::new().build(&program).code;
        if code.contains("babelHelpers.") && !source.contains("babelHelpers") {
            prelude.push_str(DECORATOR_HELPERS);
        }
        code
    } else {
        source.to_owned()
    };
    imported(&program, &mut imports);
    let (exports, stars) = exported(&program);
    let requests = requested(&program);
    let awaits = source.contains("await") && TopLevelAwait::is_in(&program);
    if !parsed.module_record.dynamic_imports.is_empty() {
        // The names used from an `import()` are not known before it runs.
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
            exports,
            stars,
            requests,
            awaits,
        },
    })
}

/// The helpers that translated decorators call, in one line so that the line numbers stay the same.
const DECORATOR_HELPERS: &str = concat!(
    "const babelHelpers = { ",
    "decorate(list, target, key, given) { ",
    "const about = arguments.length; ",
    "let result = about < 3 ? target : given === null ? Object.getOwnPropertyDescriptor(target, key) : given; ",
    "for (const one of [...list].reverse()) ",
    "result = (about < 3 ? one(result) : about > 3 ? one(target, key, result) : one(target, key)) || result; ",
    "if (about > 3 && result) Object.defineProperty(target, key, result); ",
    "return result; }, ",
    "decorateParam: (at, one) => (target, key) => one(target, key, at) }; ",
);

fn transform_options() -> TransformOptions {
    TransformOptions {
        decorator: DecoratorOptions {
            legacy: true,
            ..DecoratorOptions::default()
        },
        helper_loader: HelperLoaderOptions {
            mode: HelperLoaderMode::External,
            ..HelperLoaderOptions::default()
        },
        ..TransformOptions::default()
    }
}

/// Reports whether a line begins as only modules do. It saves parsing sources that are plainly not modules.
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

/// Reports whether a program imports or exports as modules do, and not by `export =`.
fn is_written_as_module(program: &Program<'_>) -> bool {
    let mut statements = program.body.iter();
    let assigns = |statement: &Statement<'_>| matches!(statement, Statement::TSExportAssignment(_));
    !program.body.iter().any(assigns) && statements.any(|one| one.is_module_declaration())
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

/// Returns the modules that a program imports or re-exports, in any form but `import()`.
fn requested(program: &Program<'_>) -> Vec<String> {
    let sources = program.body.iter().filter_map(|statement| match statement {
        Statement::ImportDeclaration(import) => Some(&import.source),
        Statement::ExportFromDeclaration(export) => Some(&export.source),
        Statement::ExportAllDeclaration(export) => Some(&export.source),
        _ => None,
    });
    sources.map(|source| source.value.to_string()).collect()
}

/// Searches for an `await` outside of functions.
#[derive(Default)]
struct TopLevelAwait(bool);

impl TopLevelAwait {
    fn is_in(program: &Program<'_>) -> bool {
        let mut search = Self::default();
        search.visit_program(program);
        search.0
    }
}

impl<'a> Visit<'a> for TopLevelAwait {
    fn visit_function(&mut self, _: &Function<'a>, _: ScopeFlags) {}

    fn visit_arrow_function_expression(&mut self, _: &ArrowFunctionExpression<'a>) {}

    fn visit_await_expression(&mut self, _: &AwaitExpression<'a>) {
        self.0 = true;
    }

    fn visit_for_of_statement(&mut self, statement: &ForOfStatement<'a>) {
        self.0 |= statement.r#await;
        walk::walk_for_of_statement(self, statement);
    }

    fn visit_variable_declaration(&mut self, declaration: &VariableDeclaration<'a>) {
        self.0 |= declaration.kind == VariableDeclarationKind::AwaitUsing;
        walk::walk_variable_declaration(self, declaration);
    }
}

/// Returns the names that a program exports, and the modules of its star exports.
fn exported(program: &Program<'_>) -> (Vec<String>, Vec<String>) {
    let mut names = Vec::new();
    let mut stars = Vec::new();
    for statement in &program.body {
        match statement {
            Statement::ExportDefaultDeclaration(_) => names.push("default".to_owned()),
            Statement::ExportDeclaration(export) => declared(&export.declaration, &mut names),
            Statement::ExportNamedDeclaration(export) => {
                let exported = export.specifiers.iter().map(|one| one.exported.name());
                names.extend(exported.map(|name| name.to_string()));
            }
            Statement::ExportFromDeclaration(export) => {
                let exported = export.specifiers.iter().map(|one| one.exported.name());
                names.extend(exported.map(|name| name.to_string()));
            }
            Statement::ExportAllDeclaration(export) => match &export.exported {
                Some(name) => names.push(name.name().to_string()),
                None => stars.push(export.source.value.to_string()),
            },
            _ => {}
        }
    }
    (names, stars)
}

fn declared(declaration: &Declaration<'_>, names: &mut Vec<String>) {
    let name = match declaration {
        Declaration::VariableDeclaration(variables) => {
            let patterns = variables.declarations.iter().map(|variable| &variable.id);
            let bound = patterns.flat_map(|pattern| pattern.get_binding_identifiers());
            names.extend(bound.map(|name| name.name.to_string()));
            return;
        }
        Declaration::FunctionDeclaration(function) => function.id.as_ref(),
        Declaration::ClassDeclaration(class) => class.id.as_ref(),
        _ => None,
    };
    names.extend(name.map(|name| name.name.to_string()));
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
