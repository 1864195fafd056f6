//! `ops.modules`: the operations behind `require`.

use std::path::Path;

use rquickjs::prelude::Func;
use rquickjs::{Ctx, Object, Result};

use super::group;
use crate::script::{
    Host, ImportKind, ResolveRequest, SourceKind, import_now, path_of, source_url, wrapper,
};

pub(crate) fn install<'js>(ctx: &Ctx<'js>, ops: &Object<'js>, host: &Host) -> Result<()> {
    let modules = group(ctx, ops, "modules")?;
    let shared = host.clone();
    modules.set(
        "resolve",
        Func::from(
            move |ctx: Ctx<'js>, name: String, from: String| -> Result<String> {
                let request = ResolveRequest {
                    name: &name,
                    from: Path::new(&from),
                    wanted: ImportKind::Require,
                };
                shared.loading().name_of(&ctx, request)
            },
        ),
    )?;
    let shared = host.clone();
    modules.set(
        "load",
        Func::from(move |ctx: Ctx<'js>, name: String| -> Result<Object<'js>> {
            let loaded = Object::new(ctx.clone())?;
            if name.starts_with("pinion:") {
                loaded.set("kind", "builtin")?;
                loaded.set("namespace", import_now(&ctx, &name)?)?;
                return Ok(loaded);
            }
            let prepared = shared.loading().prepare(&ctx, &path_of(&name))?;
            match prepared.facts.kind {
                SourceKind::Module => {
                    loaded.set("kind", "module")?;
                    loaded.set("namespace", import_now(&ctx, &name)?)?;
                }
                SourceKind::CommonJs => {
                    loaded.set("kind", "commonjs")?;
                    loaded.set("wrapper", wrapper(&ctx, &name, prepared.text())?)?;
                }
                SourceKind::Json => {
                    loaded.set("kind", "json")?;
                    loaded.set("text", prepared.text())?;
                }
            }
            Ok(loaded)
        }),
    )?;
    let shared = host.clone();
    modules.set(
        "imports",
        Func::from(move |name: String| shared.loading().imports_of(&name)),
    )?;
    modules.set(
        "fileUrl",
        Func::from(|path: String| source_url(Path::new(&path))),
    )?;
    modules.set(
        "filePath",
        Func::from(|url: String| -> Option<String> {
            let path = ::url::Url::parse(&url).ok()?.to_file_path().ok()?;
            Some(path.to_string_lossy().into_owned())
        }),
    )?;
    Ok(())
}
