//! Compiles every `js/**/*.js` to bytecode and writes the table that the binary embeds.
//!
//! The name of a module is its path: `js/runtime/url.js` is `pinion:runtime/url`. The names that a module exports are
//! listed beside its bytecode, so that the loader finds missing names without running the module.

use std::env;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use rquickjs::loader::{ImportAttributes, Loader, Resolver};
use rquickjs::module::WriteOptions;
use rquickjs::{CatchResultExt, Context, Ctx, Module, Runtime};

#[path = "build/exports.rs"]
mod exports;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=js");
    println!("cargo::rerun-if-changed=build");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let mut files = Vec::new();
    collect(Path::new("js"), &mut files)?;
    // In the order of their names, by which the program finds them.
    files.sort_by_key(|file| file.with_extension("").to_string_lossy().into_owned());

    let runtime = Runtime::new()?;
    runtime.set_max_stack_size(0);
    runtime.set_loader(Anything, Anything);
    let context = Context::full(&runtime)?;
    let mut table = String::from("&[\n");
    for file in files {
        println!("cargo::rerun-if-changed={}", file.display());
        let source = fs::read_to_string(&file)?;
        let place = file
            .strip_prefix("js")?
            .with_extension("")
            .to_string_lossy()
            .replace('\\', "/");
        let name = format!("pinion:{place}");
        let bytecode = context
            .with(|ctx| {
                let module = Module::declare(ctx.clone(), name.as_str(), source.as_str())
                    .catch(&ctx)
                    .map_err(|error| error.to_string())?;
                module
                    .write(WriteOptions {
                        strip_source: true,
                        ..WriteOptions::default()
                    })
                    .map_err(|error| error.to_string())
            })
            .map_err(|error| format!("{}: {error}", file.display()))?;
        let target = out.join(format!("{}.bin", place.replace('/', "-")));
        fs::write(&target, bytecode)?;
        let found = exports::scan(&source);
        let listed = found
            .names
            .iter()
            .map(|export| (&export.name, &export.from, &export.inner));
        writeln!(
            table,
            "    Embedded {{ name: {name:?}, code: include_bytes!({target:?}), exports: &{:?}, \
             stars: &{:?} }},",
            listed.collect::<Vec<_>>(),
            found.stars,
        )?;
    }
    table.push_str("]\n");
    fs::write(out.join("embedded.rs"), table)?;
    Ok(())
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    println!("cargo::rerun-if-changed={}", directory.display());
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "js") {
            files.push(path);
        }
    }
    Ok(())
}

/// Compiling a module asks for those it imports; an empty one will do.
struct Anything;

impl Resolver for Anything {
    fn resolve<'js>(
        &mut self,
        _ctx: &Ctx<'js>,
        _base: &str,
        name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> rquickjs::Result<String> {
        Ok(format!("imported:{name}"))
    }
}

impl Loader for Anything {
    fn load<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> rquickjs::Result<Module<'js>> {
        Module::declare(ctx.clone(), name, "")
    }
}
