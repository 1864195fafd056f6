//! `pinix registry`: searches packages, publishes one and manages its tags.

use std::path::Path;
use std::process::ExitCode;

use pinion_access::client::{Credentials, chosen_registry};
use pinion_clip::install::Library;
use pinion_clip::registry::{Address, PackageKind, Registry, Search};
use pinion_clip::source::PackageName;
use pinion_clip::{Programs, Token};

use crate::commands::out;
use crate::failure::{Context, Failure};
use crate::hub::{caller, environment, root_dir};
use crate::verb::{Line, Verb};
use pinion_cli::tables;
use pinion_text::harmless_line;

pub(super) const SEARCH: Verb = Verb::new("pinix registry", &tables::pinix::SEARCH, search);

pub(super) const PUBLISH: Verb = Verb::new("pinix registry", &tables::pinix::PUBLISH, publish);

pub(super) const TAGS: Verb = Verb::new("pinix registry", &tables::pinix::TAGS, tags);

/// Returns the name of the registry as it was written.
pub(super) fn named_registry(line: &Line) -> Result<String, Failure> {
    let root = root_dir(line)?;
    let named = chosen_registry(&root, line.value("--registry"), environment)?;
    named.ok_or_else(|| {
        Failure::failed("no registry is configured.")
            .hint("Name one with --registry, PINIX_REGISTRY or `pinix config set registry URL`.")
    })
}

/// Returns the name of the registry and its address.
pub(super) fn registry_address(line: &Line) -> Result<(String, Address), Failure> {
    let named = named_registry(line)?;
    let address = named.parse()?;
    Ok((named, address))
}

fn registry(line: &Line) -> Result<Registry, Failure> {
    let root = root_dir(line)?;
    let (named, address) = registry_address(line)?;
    let known = Credentials::load(&root)?;
    let token = known.get(&named).map(|it| Token::new(it.token.reveal()));
    Ok(Registry::new(address, token))
}

fn search(line: &Line) -> Result<ExitCode, Failure> {
    let words = line.words.join(" ");
    let kind = match line.value("--type") {
        None => None,
        Some("clip") => Some(PackageKind::Clip),
        Some("edge-clip") => Some(PackageKind::Edge),
        Some(other) => {
            return Err(line.wrong(format!("--type is clip or edge-clip, not {other:?}")));
        }
    };
    let search = Search {
        words: &words,
        domain: line.value("--domain").unwrap_or_default(),
        kind,
        limit: line.parsed("--limit", "a number")?.unwrap_or(0),
        offset: 0,
    };
    let registry = registry(line)?;
    let found = caller::wait(async { Ok(registry.search(&search).await?) })?;
    let rows = found.iter().map(|it| {
        let cells =
            [&it.name, &it.version, &it.domain, &it.description].map(|it| harmless_line(it));
        cells.join("\t") + "\n"
    });
    out(&rows.collect::<String>())
}

fn tags(line: &Line) -> Result<ExitCode, Failure> {
    let words: Vec<&str> = line.words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["list", package] => {
            let package: PackageName = package.parse()?;
            let registry = registry(line)?;
            let tags = caller::wait(async { Ok(registry.tags(&package).await?) })?;
            let rows = tags.iter().map(|(tag, version)| {
                let cells = [tag, version].map(|it| harmless_line(it));
                cells.join("\t") + "\n"
            });
            out(&rows.collect::<String>())
        }
        ["add", versioned, tag] => {
            let Some((package, version)) = versioned.rsplit_once('@').filter(|it| !it.0.is_empty())
            else {
                return Err(line.wrong("name a version, as in @me/todo@1.3.0"));
            };
            let package: PackageName = package.parse()?;
            let registry = registry(line)?;
            caller::wait(async { Ok(registry.tag(&package, tag, version).await?) })?;
            out(&format!("{package}: {tag} is {version}.\n"))
        }
        _ => Err(line.wrong("use list or add, with a package")),
    }
}

fn publish(line: &Line) -> Result<ExitCode, Failure> {
    let path = match line.words.as_slice() {
        [] => ".",
        [path] => path,
        _ => return Err(line.wrong("one directory at a time")),
    };
    let registry = registry(line)?;
    let scratch = tempfile::tempdir()?;
    let library = Library::open(scratch.path(), Programs::default())?;
    caller::wait(async {
        let directory = Path::new(path).canonicalize().context(path)?;
        let publication = library.publication(&directory, line.value("--tag"));
        Ok(registry.publish(&publication.await?).await?)
    })?;
    pinion_process::kill_all();
    out(&format!("{path} is published.\n"))
}
