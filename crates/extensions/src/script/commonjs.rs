//! CommonJS from modules: `import` of a file that assigns `module.exports`.

use std::path::Path;

use rquickjs::context::EvalOptions;
use rquickjs::{Ctx, Function, Module, Object, Result, Value};

use super::facade::{exported, is_identifier};
use super::load::{REQUIRE, import_now};

/// Returns the function around the text of a CommonJS file.
pub(crate) fn wrapper<'js>(ctx: &Ctx<'js>, path: &str, code: &str) -> Result<Function<'js>> {
    let code = code.trim_start_matches('\u{feff}');
    let code = match code.strip_prefix("#!") {
        Some(rest) => format!("//{rest}"),
        None => code.to_owned(),
    };
    let mut options = EvalOptions::default();
    options.strict = false;
    options.filename = Some(path.to_owned());
    ctx.eval_with_options(
        format!("(function (exports, require, module, __filename, __dirname) {{ {code}\n}})"),
        options,
    )
}

/// Returns a module with the exports of the CommonJS or JSON file `name`.
///
/// The file runs immediately: its exports are known only afterwards, and a module needs its export names before it
/// runs.
pub(crate) fn as_module<'js>(ctx: &Ctx<'js>, name: &str, path: &Path) -> Result<Module<'js>> {
    let require = import_now(ctx, REQUIRE)?;
    let run: Function<'js> = require.get("runForImport")?;
    let names: Vec<String> = run.call((path.to_string_lossy().as_ref(),))?;
    let mut source = format!(
        "import {{ exportsOf, defaultOf }} from {REQUIRE:?};\n\
         const exports = exportsOf({path:?});\nexport default defaultOf(exports);\n",
        path = path.to_string_lossy(),
    );
    for (at, name) in names.iter().filter(|name| is_identifier(name)).enumerate() {
        if name != "default" {
            source.push_str(&format!(
                "const name{at} = exports[{name:?}];\nexport {{ name{at} as {} }};\n",
                exported(name)
            ));
        }
    }
    Module::declare(ctx.clone(), name, source)
}

/// Returns a `require` for the file at `path`.
pub(crate) fn require_for<'js>(ctx: &Ctx<'js>, path: &Path) -> Result<Value<'js>> {
    let module: Object<'js> = import_now(ctx, REQUIRE)?;
    let create: Function<'js> = module.get("createRequire")?;
    create.call((path.to_string_lossy().as_ref(),))
}
