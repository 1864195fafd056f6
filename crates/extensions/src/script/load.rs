//! The module loader of the engine: it finds, prepares and declares modules.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use rquickjs::loader::{ImportAttributes, Loader, Resolver};
use rquickjs::module::WriteOptions;
use rquickjs::prelude::{Func, This};
use rquickjs::{Ctx, Error, Exception, Module, Object, Result};

use super::cache::Cache;
use super::facade::Facades;
use super::missing_exports::MissingExports;
use super::packages::ImportKind;
use super::resolve::{Request, Target, internal, resolve};
use super::top_level_await::{AWAIT, AwaitCache};
use super::transform::{Facts, Imports, SourceKind, Transformed, transform};
use super::unsafe_calls::{Bytecode, load_module};
use super::{commonjs, embedded};

/// The largest file that is loaded as a module, in bytes. The largest bundles of published packages have about 10 MB.
pub(crate) const MAX_SOURCE_BYTES: u64 = 64 << 20;

/// The module behind `require`.
pub(crate) const REQUIRE: &str = "pinion:runtime/require";

/// State of the loader, for all generations.
pub(crate) struct Loading {
    cache: RefCell<Option<Rc<Cache>>>,
    facades: Facades,
    pub(super) missing_exports: MissingExports,
    pub(super) waits: AwaitCache,
    wanted: RefCell<HashMap<String, Imports>>,
    /// Generated modules around a CommonJS file; they may import [`REQUIRE`].
    commonjs_wrappers: RefCell<HashSet<String>>,
    added_entries: RefCell<u64>,
}

/// A file that is ready to be declared or wrapped.
pub(crate) struct Prepared {
    pub(crate) facts: Facts,
    code: Code,
}

enum Code {
    Text { text: String, key: Option<String> },
    Compiled(Vec<u8>),
}

impl Prepared {
    /// Returns the code as text; empty for compiled modules.
    pub(crate) fn text(&self) -> &str {
        match &self.code {
            Code::Text { text, .. } => text,
            Code::Compiled(_) => "",
        }
    }
}

impl Loading {
    pub(crate) fn new(cache_dir: Option<PathBuf>) -> Self {
        Self {
            cache: RefCell::new(cache_dir.map(|path| Rc::new(Cache::new(path)))),
            facades: Facades::default(),
            missing_exports: MissingExports::default(),
            waits: AwaitCache::default(),
            wanted: RefCell::default(),
            commonjs_wrappers: RefCell::default(),
            added_entries: RefCell::new(0),
        }
    }

    /// Changes the directory of the cache.
    pub(crate) fn set_cache_dir(&self, cache_dir: Option<PathBuf>) {
        *self.cache.borrow_mut() = cache_dir.map(|path| Rc::new(Cache::new(path)));
    }

    fn cache(&self) -> Option<Rc<Cache>> {
        self.cache.borrow().clone()
    }

    /// Removes old cache entries. Call it when the engine is idle.
    pub(crate) fn tidy(&self) {
        if std::mem::take(&mut *self.added_entries.borrow_mut()) > 0
            && let Some(cache) = self.cache()
        {
            cache.trim();
        }
    }

    /// Reads `path` and prepares it, from the cache or through the transform.
    pub(crate) fn prepare(&self, ctx: &Ctx<'_>, path: &Path) -> Result<Prepared> {
        let source = read(ctx, path)?;
        let key = self.cache().map(|cache| (cache, Cache::key(path, &source)));
        if let Some(entry) = key.as_ref().and_then(|(cache, key)| cache.get(key)) {
            let code = match entry.facts.kind {
                SourceKind::Module => Code::Compiled(entry.code),
                SourceKind::CommonJs | SourceKind::Json => Code::Text {
                    text: String::from_utf8_lossy(&entry.code).into_owned(),
                    key: None,
                },
            };
            return Ok(Prepared {
                facts: entry.facts,
                code,
            });
        }
        let done = transformed(ctx, path, &source)?;
        let key = key.map(|(cache, key)| {
            // Text is cached only if a transform produced it.
            if done.facts.kind == SourceKind::CommonJs && done.code.as_bytes() != source {
                cache.put(&key, &done.facts, done.code.as_bytes());
            }
            key
        });
        Ok(Prepared {
            facts: done.facts,
            code: Code::Text {
                text: done.code,
                key,
            },
        })
    }

    /// Adds an `await` to `prepared` if a module that it imports has one; see [`super::top_level_await`].
    fn with_await(&self, ctx: &Ctx<'_>, path: &Path, prepared: Prepared) -> Result<Prepared> {
        if prepared.facts.awaits || !self.awaits(ctx, path) {
            return Ok(prepared);
        }
        // The cached module is without the added `await`.
        let mut text = match prepared.code {
            Code::Text { text, .. } => text,
            Code::Compiled(_) => transformed(ctx, path, &read(ctx, path)?)?.code,
        };
        text.push_str(AWAIT);
        Ok(Prepared {
            facts: prepared.facts,
            code: Code::Text { text, key: None },
        })
    }

    fn declare<'js>(&self, ctx: &Ctx<'js>, name: &str, prepared: &Prepared) -> Result<Module<'js>> {
        match &prepared.code {
            Code::Compiled(code) => load_module(ctx, Bytecode::trusted(code)),
            Code::Text { text, key } => {
                let module = Module::declare(ctx.clone(), name, text.as_str())?;
                if let (Some(key), Some(cache)) = (key, self.cache()) {
                    let options = WriteOptions {
                        strip_source: false,
                        ..WriteOptions::default()
                    };
                    cache.put(key, &prepared.facts, &module.write(options)?);
                    *self.added_entries.borrow_mut() += 1;
                }
                Ok(module)
            }
        }
    }

    /// Resolves `request` to the name of a module.
    pub(crate) fn name_of(&self, ctx: &Ctx<'_>, request: Request<'_>) -> Result<String> {
        match resolve(request) {
            Ok(Target::Builtin(path)) => Ok(format!("pinion:{path}")),
            Ok(Target::File(path, query)) => Ok(format!("{}{query}", path.to_string_lossy())),
            Err(missing) => Err(not_found(ctx, &missing.message)),
        }
    }

    /// Returns the modules that a file imports by name, if it has been loaded.
    pub(crate) fn imports_of(&self, name: &str) -> Vec<String> {
        let wanted = self.wanted.borrow();
        let imports = wanted.get(name).into_iter().flatten();
        let mut modules: Vec<String> = imports.map(|(module, _)| module.clone()).collect();
        modules.sort();
        modules.dedup();
        modules
    }

    fn load_file<'js>(&self, ctx: &Ctx<'js>, name: &str) -> Result<Module<'js>> {
        let path = path_of(name);
        let prepared = match self.missing_exports.take_ready(&path) {
            Some(prepared) => prepared,
            None => self.prepare(ctx, &path)?,
        };
        if prepared.facts.kind != SourceKind::Module {
            self.commonjs_wrappers.borrow_mut().insert(name.to_owned());
            return commonjs::as_module(ctx, name, &path);
        }
        let prepared = self.with_await(ctx, &path, prepared)?;
        let uses_require = prepared.facts.uses_require;
        self.wanted
            .borrow_mut()
            .insert(name.to_owned(), prepared.facts.imports.clone());
        let module = self.declare(ctx, name, &prepared)?;
        let meta = module.meta()?;
        let query = &name[path.to_string_lossy().len().min(name.len())..];
        meta.set("url", format!("{}{query}", source_url(&path)))?;
        meta.set("filename", path.to_string_lossy().as_ref())?;
        meta.set(
            "dirname",
            path.parent().unwrap_or(&path).to_string_lossy().as_ref(),
        )?;
        if uses_require {
            meta.set("require", commonjs::require_for(ctx, &path)?)?;
        }
        let from = path.clone();
        meta.set(
            "resolve",
            Func::from(move |ctx: Ctx<'_>, name: String| -> Result<String> {
                let request = Request {
                    name: &name,
                    from: &from,
                    wanted: ImportKind::Import,
                };
                match resolve(request) {
                    Ok(Target::Builtin(_)) => Ok(name),
                    Ok(Target::File(path, query)) => Ok(format!("{}{query}", source_url(&path))),
                    Err(missing) => Err(not_found(&ctx, &missing.message)),
                }
            }),
        )?;
        Ok(module)
    }
}

fn read(ctx: &Ctx<'_>, path: &Path) -> Result<Vec<u8>> {
    pinion_files::read(path, MAX_SOURCE_BYTES).map_err(|error| {
        Exception::throw_message(ctx, &format!("Cannot read '{}': {error}", path.display()))
    })
}

fn transformed(ctx: &Ctx<'_>, path: &Path, source: &[u8]) -> Result<Transformed> {
    let text = String::from_utf8_lossy(source);
    transform(path, text.trim_start_matches('\u{feff}'))
        .map_err(|message| Exception::throw_syntax(ctx, &message))
}

/// Returns the file of a module name.
pub(crate) fn path_of(name: &str) -> PathBuf {
    match name.find(['?', '#']) {
        Some(end) if !Path::new(name).exists() => PathBuf::from(&name[..end]),
        _ => PathBuf::from(name),
    }
}

/// Returns `path` as a `file:` URL.
pub(crate) fn source_url(path: &Path) -> String {
    url::Url::from_file_path(path)
        .map_or_else(|()| format!("file://{}", path.display()), String::from)
}

fn not_found(ctx: &Ctx<'_>, message: &str) -> Error {
    let error = Exception::from_message(ctx.clone(), message).and_then(|exception| {
        exception.as_object().set("code", "MODULE_NOT_FOUND")?;
        Ok(exception)
    });
    match error {
        Ok(exception) => exception.throw(),
        Err(error) => error,
    }
}

/// Evaluates a module synchronously and returns its namespace. Fails if the module awaits something.
pub(crate) fn import_now<'js>(ctx: &Ctx<'js>, name: &str) -> Result<Object<'js>> {
    let source = format!("export * as all from {name:?};");
    let gate = Module::declare(ctx.clone(), format!("pinion:now/{name}"), source)?;
    let (gate, promise) = gate.eval()?;
    match promise.result::<()>() {
        Some(Ok(())) => {}
        Some(Err(error)) => {
            // The error is thrown here, so it must not be reported again as an unhandled rejection.
            let thrown = ctx.catch();
            promise
                .catch()?
                .call::<_, ()>((This(promise.clone()), Func::from(|| ())))?;
            return Err(if error.is_exception() {
                ctx.throw(thrown)
            } else {
                error
            });
        }
        None => {
            return Err(Exception::throw_message(
                ctx,
                &format!("'{name}' awaits something while it loads: import it instead of require"),
            ));
        }
    }
    gate.get("all")
}

/// The [`Resolver`] of the engine.
pub(crate) struct ModuleResolver(pub(crate) Rc<Loading>);

impl Resolver for ModuleResolver {
    fn resolve<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        base: &str,
        name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> Result<String> {
        let inside = base.starts_with("pinion:")
            || name == REQUIRE && self.0.commonjs_wrappers.borrow().contains(base);
        if inside && let Some(name) = internal(base, name) {
            return Ok(name);
        }
        if name.starts_with("pinion:") {
            return Err(not_found(ctx, &format!("Cannot find module '{name}'")));
        }
        let from = path_of(base);
        let request = Request {
            name,
            from: &from,
            wanted: ImportKind::Import,
        };
        let found = self.0.name_of(ctx, request)?;
        let wanted = self.0.wanted.borrow();
        let names = wanted
            .get(base)
            .and_then(|imports| imports.iter().find(|(module, _)| module == name))
            .map(|(_, names)| names.as_slice())
            .unwrap_or_default();
        Ok(match embedded::find(&found) {
            Some(module) => self.0.facades.covering(module, names),
            None => self.0.with_missing_exports(ctx, found, names),
        })
    }
}

/// The [`Loader`] of the engine.
pub(crate) struct ModuleLoader(pub(crate) Rc<Loading>);

impl Loader for ModuleLoader {
    fn load<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> Result<Module<'js>> {
        // The engine calls this again while a CommonJS file runs below, so `self` must not change; all state is in
        // `Loading`.
        let loading = Rc::clone(&self.0);
        if let Some(module) = embedded::find(name) {
            return load_module(ctx, Bytecode::trusted(module.code));
        }
        let written = loading.facades.source(name);
        if let Some(source) = written.or_else(|| loading.missing_exports.source(name)) {
            return Module::declare(ctx.clone(), name, source);
        }
        if name.starts_with("pinion:") {
            return Err(not_found(ctx, &format!("Cannot find module '{name}'")));
        }
        loading.load_file(ctx, name)
    }
}
