//! Tests of packages from registries: services with both forms of documents, directories, and untrusted registries.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot be set up should fail"
)]

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use common::archive::{Item, archive};
use common::server::{Answer, Request, Server};
use common::{SHELL, TestClip, ask, write_program};
use pinion_clip::install::{Install, Library, Record};
use pinion_clip::logs::ClipLog;
use pinion_clip::registry::{PackageKind, Registry, Search};
use pinion_clip::source::Source;
use pinion_clip::{Clip, ClipError, Code, NoCrossCalls, Programs, Token};
use serde_json::{Value, json};
use sha1::Sha1;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}

/// Returns the archive of a clip that answers every call with its version.
fn packed(version: &str) -> Vec<u8> {
    let clip_json = json!({"name": "@other/name", "runtime": "exec", "main": "run.sh"}).to_string();
    let script =
        format!("#!/bin/bash\n{SHELL}\nregister\nwhile next; do result '\"{version}\"'; done");
    archive(&[
        Item::File("package/clip.json", &clip_json),
        Item::File("package/run.sh", &script),
        Item::File("package/bindings.json", r#"{"store":{"alias":"evil"}}"#),
    ])
}

struct Workshop {
    root: TempDir,
    library: Library,
}

fn workshop() -> Workshop {
    drop(TestClip::new());
    let root = tempfile::tempdir().unwrap();
    let library = Library::open(root.path().join("home"), Programs::default()).unwrap();
    Workshop { root, library }
}

impl Workshop {
    async fn add(&self, source: &str, token: Option<&Token>) -> Result<Record, ClipError> {
        let source = Source::parse(source, None).unwrap();
        let staged = self
            .library
            .stage(&Install {
                alias: "todo",
                source: &source,
                owner: "",
                call_secret: "",
                registry_token: token,
            })
            .await?;
        self.library.commit(staged)
    }

    async fn answer(&self) -> Value {
        let record = &self.library.records().unwrap()["todo"];
        let config = self.library.config(record).unwrap();
        let log = Arc::new(ClipLog::in_memory());
        let clip = Clip::new(config, log, Arc::new(NoCrossCalls));
        ask(&clip, "a", &json!({})).await.unwrap()
    }

    fn leftovers(&self) -> Vec<String> {
        let clips = fs::read_dir(self.root.path().join("home/clips")).unwrap();
        let names = clips.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.collect()
    }
}

/// Starts a server that answers the paths in a table, and 404 for all others.
fn table(entries: impl IntoIterator<Item = (String, Answer)>) -> Server {
    let entries: BTreeMap<String, Answer> = entries.into_iter().collect();
    Server::start(move |request: &Request| {
        let missing = || Answer::status(404, r#"{"error":"no such thing"}"#);
        entries.get(&request.path).cloned().unwrap_or_else(missing)
    })
}

fn at(path: &str, answer: Value) -> (String, Answer) {
    (path.to_owned(), Answer::ok(answer.to_string()))
}

#[tokio::test]
async fn services_with_either_form_of_documents_are_understood() {
    let (first, second) = (packed("1.0.0"), packed("1.1.0-beta"));
    let old_sum = hex(&Sha1::digest(&first));
    let server = table([
        at(
            "/api/packages/@lab/todo",
            json!({"name": "@lab/todo", "type": "clip", "dist_tags": {"latest": "1.0.0", "beta": "1.1.0-beta"}}),
        ),
        at(
            "/api/packages/@lab/todo/1.0.0",
            json!({"version": "1.0.0", "dist": {"TarballURL": "https://elsewhere.example/x.tgz", "shasum": old_sum}}),
        ),
        (
            "/api/packages/@lab/todo/1.0.0/download".into(),
            Answer::ok(first),
        ),
        at(
            "/api/packages/@lab/new",
            json!({"dist-tags": {"latest": "9.9.9", "next": "1.1.0-beta"}, "versions": {"1.1.0-beta":
                {"dist": {"tarball": "/files/new.tgz", "shasum": hex(&Sha256::digest(&second)), "size": second.len()},
                 "deprecated": "use 2"}}}),
        ),
        ("/files/new.tgz".into(), Answer::ok(second)),
    ]);
    let shop = workshop();
    let registry = format!("registry:{}/api", server.url);
    let record = shop
        .add(&format!("{registry}/#@lab/todo"), None)
        .await
        .unwrap();
    assert_eq!(record.source, format!("{registry}#@lab/todo@1.0.0"));
    assert_eq!(
        (record.package.as_str(), record.version.as_str()),
        ("@lab/todo", "1.0.0")
    );
    assert_eq!(shop.answer().await, "1.0.0");
    assert!(shop.library.bindings("todo").unwrap().is_empty());

    let source = Source::parse(&format!("{registry}#@lab/new@next"), None).unwrap();
    let install = Install {
        alias: "todo",
        source: &source,
        owner: "",
        call_secret: "",
        registry_token: None,
    };
    let staged = shop.library.stage(&install).await.unwrap();
    assert_eq!(
        (staged.replaces, staged.deprecated.as_str()),
        (true, "use 2")
    );
    let record = shop.library.commit(staged).unwrap();
    assert_eq!(record.version, "1.1.0-beta");
    assert_eq!(shop.answer().await, "1.1.0-beta");
    for (missing, words) in [
        ("@lab/ghost", "is not in the registry"),
        ("@lab/todo@7.7.7", "no version \"7.7.7\""),
        ("@lab/new", "no version \"9.9.9\""),
    ] {
        let error = shop.add(&format!("{registry}#{missing}"), None).await;
        let error = error.unwrap_err();
        assert_eq!(error.code, Code::NotFound);
        assert!(error.message.contains(words), "{error}");
    }
    assert_eq!(shop.leftovers(), ["todo"]);
}

#[tokio::test]
async fn an_upgrade_preserves_data_and_skips_the_same_version() {
    let latest = Arc::new(Mutex::new("1.0.0".to_owned()));
    let told = latest.clone();
    let server = Server::start(move |request| {
        if request.path.ends_with(".tgz") {
            let version = request.path.trim_end_matches(".tgz").rsplit('/').next();
            return Answer::ok(packed(version.unwrap()));
        }
        let version = |version: &str| {
            let sum = hex(&Sha256::digest(packed(version)));
            json!({"dist": {"tarball": format!("/{version}.tgz"), "shasum": sum}})
        };
        let versions = json!({"1.0.0": version("1.0.0"), "1.1.0": version("1.1.0")});
        let latest = told.lock().unwrap().clone();
        Answer::ok(json!({"dist-tags": {"latest": latest}, "versions": versions}).to_string())
    });
    let shop = workshop();
    let source = format!("registry:{}#@lab/todo", server.url);
    let record = shop.add(&source, None).await.unwrap();
    shop.library.data().write("todo", "kept", b"data").unwrap();
    let library = &shop.library;
    assert_eq!(library.newer(&record, None, None).await.unwrap(), None);
    *latest.lock().unwrap() = "1.1.0".into();
    let newer = library.newer(&record, None, None).await.unwrap().unwrap();
    assert_eq!(newer.version(), Some("1.1.0"));
    let record = shop.add(&newer.to_string(), None).await.unwrap();
    assert_eq!(shop.answer().await, "1.1.0");
    assert_eq!(library.data().read("todo", "kept").unwrap(), b"data");
    assert_eq!(library.newer(&record, None, None).await.unwrap(), None);
    let back = library.newer(&record, Some("1.0.0"), None).await.unwrap();
    assert_eq!(back.unwrap().version(), Some("1.0.0"));
}

#[tokio::test]
async fn untrusted_packages_are_not_installed() {
    let good = packed("1.0.0");
    let sum = hex(&Sha256::digest(&good));
    let mut torn = Answer::ok(good.clone());
    torn.cut = Some(good.len() / 2);
    let mut short = Answer::ok(&good[..good.len() / 2]);
    short.cut = None;
    let outside = archive(&[Item::File("package/../../outside", "x")]);
    let link = archive(&[Item::Link("package/l", "/etc/passwd")]);
    let hostile = |bytes: &[u8]| (hex(&Sha256::digest(bytes)), Answer::ok(bytes));
    let cases: Vec<(&str, (String, Answer), Code)> = vec![
        (
            "none",
            (String::new(), Answer::ok(&*good)),
            Code::FailedPrecondition,
        ),
        (
            "odd",
            ("abc".into(), Answer::ok(&*good)),
            Code::InvalidArgument,
        ),
        (
            "wrong",
            ("0".repeat(64), Answer::ok(&*good)),
            Code::FailedPrecondition,
        ),
        (
            "wrong1",
            ("0".repeat(40), Answer::ok(&*good)),
            Code::FailedPrecondition,
        ),
        ("torn", (sum.clone(), torn), Code::Unavailable),
        ("short", (sum.clone(), short), Code::FailedPrecondition),
        (
            "gone",
            (sum.clone(), Answer::status(404, "")),
            Code::NotFound,
        ),
        (
            "secret",
            (sum.clone(), Answer::status(401, r#"{"error":"log in"}"#)),
            Code::Unauthenticated,
        ),
        (
            "broken",
            (sum.clone(), Answer::status(502, "<html>")),
            Code::Unavailable,
        ),
        (
            "away",
            (sum.clone(), Answer::redirect("ftp://127.0.0.1/x")),
            Code::FailedPrecondition,
        ),
        (
            "file",
            (sum.clone(), Answer::redirect("file:///etc/passwd")),
            Code::FailedPrecondition,
        ),
        ("outside", hostile(&outside), Code::InvalidArgument),
        ("link", hostile(&link), Code::InvalidArgument),
        ("garbage", hostile(b"not an archive"), Code::InvalidArgument),
    ];
    let mut entries = Vec::new();
    for (name, (sum, answer), _) in &cases {
        let dist = json!({"shasum": sum, "tarball": format!("/{name}.tgz")});
        let document =
            json!({"dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": {"dist": dist}}});
        entries.push(at(&format!("/packages/@lab/{name}"), document));
        entries.push(at(
            &format!("/packages/@lab/{name}/1.0.0"),
            json!({"dist": dist}),
        ));
        entries.push((format!("/{name}.tgz"), answer.clone()));
    }
    let dist = json!({"shasum": sum, "size": 5, "tarball": "/sized.tgz"});
    entries.push(at(
        "/packages/@lab/sized",
        json!({"dist-tags": {"latest": "1"}, "versions": {"1": {"dist": dist}}}),
    ));
    entries.push(("/sized.tgz".into(), Answer::ok(&*good)));
    entries.push(("/packages/@lab/words".into(), Answer::ok("hello")));
    let huge = format!("{{{}}}", " ".repeat(17 * 1024 * 1024));
    entries.push(("/packages/@lab/huge".into(), Answer::ok(huge)));
    let server = table(entries);
    let shop = workshop();
    let cases = cases.into_iter().map(|(name, _, code)| (name, code));
    let more = [
        ("sized", Code::Unavailable),
        ("words", Code::Unavailable),
        ("huge", Code::ResourceExhausted),
    ];
    for (name, code) in cases.chain(more) {
        let source = format!("registry:{}#@lab/{name}", server.url);
        let error = shop.add(&source, None).await.unwrap_err();
        assert_eq!(error.code, code, "{name}: {error}");
        assert_eq!(shop.leftovers(), [""; 0], "{name}");
        if name == "secret" {
            assert!(error.message.contains("log in"), "{error}");
        }
    }
    assert!(!shop.root.path().join("outside").exists());
    assert!(shop.library.records().unwrap().is_empty());
    let nobody = "registry:http://127.0.0.1:1#@lab/x";
    assert_eq!(
        shop.add(nobody, None).await.unwrap_err().code,
        Code::Unavailable
    );
}

#[tokio::test]
async fn the_token_goes_to_the_registry_alone() {
    let good = packed("1.0.0");
    let sum = hex(&Sha256::digest(&good));
    let elsewhere = table([("/x.tgz".to_owned(), Answer::ok(good))]);
    let server = table([
        at(
            "/packages/@lab/todo",
            json!({"dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": {"dist": {"shasum": sum}}}}),
        ),
        (
            "/packages/@lab/todo/1.0.0/download".into(),
            Answer::redirect(&format!("{}/x.tgz", elsewhere.url)),
        ),
    ]);
    let shop = workshop();
    let token = Token::new("top-secret");
    let source = format!("registry:{}#@lab/todo", server.url);
    shop.add(&source, Some(&token)).await.unwrap();
    for request in server.seen.lock().unwrap().iter() {
        assert_eq!(request.header("authorization"), Some("Bearer top-secret"));
    }
    let strangers = elsewhere.seen.lock().unwrap().clone();
    assert_eq!(strangers.len(), 1);
    assert_eq!(strangers[0].header("authorization"), None);
    let config = fs::read_to_string(shop.root.path().join("home/config.json")).unwrap();
    assert!(!config.contains("top-secret"));

    let far = "http://registry.invalid".parse().unwrap();
    let package = "@lab/todo".parse().unwrap();
    let refused = Registry::new(far, Some(token)).find(&package, None).await;
    let refused = refused.unwrap_err();
    assert_eq!(refused.code, Code::FailedPrecondition);
    assert!(!refused.message.contains("top-secret"));
}

#[tokio::test]
async fn an_edge_clip_is_installed_as_its_description() {
    let pinix =
        json!({"domain": "web", "description": "A browser", "commands": [{"name": "open"}]});
    let server = table([
        at(
            "/packages/@lab/browser",
            json!({"type": "edge-clip", "dist_tags": {"latest": "2.0.0"}}),
        ),
        at(
            "/packages/@lab/browser/2.0.0",
            json!({"version": "2.0.0", "pinix": pinix}),
        ),
    ]);
    let shop = workshop();
    let source = format!("registry:{}#@lab/browser", server.url);
    let record = shop.add(&source, None).await.unwrap();
    assert_eq!(
        (record.package.as_str(), record.version.as_str()),
        ("@lab/browser", "2.0.0")
    );
    assert_eq!(record.manifest.commands[0].name, "open");
    let directory = shop.library.directory("todo");
    let text = fs::read(directory.join("clip.json")).unwrap();
    let written: Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(
        written,
        json!({"name": "@lab/browser", "version": "2.0.0", "type": "edge-clip", "pinix": pinix})
    );
    let paths = server.paths();
    assert!(
        !paths.iter().any(|path| path.ends_with("download")),
        "{paths:?}"
    );
    let config = shop.library.config(&record).unwrap();
    let clip = Clip::new(
        config,
        Arc::new(ClipLog::in_memory()),
        Arc::new(NoCrossCalls),
    );
    let refused = clip.inspect().await.unwrap_err();
    assert_eq!(refused.code, Code::Unavailable);
    assert!(refused.message.contains("an edge clip"), "{refused}");
}

#[tokio::test]
async fn a_version_without_a_checksum_is_refused_for_that() {
    let directory = tempfile::tempdir().unwrap();
    let index = json!({"packages": {"@lab/todo": {
        "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": {"dist": {"tarball": "x.tgz"}}},
    }}});
    fs::write(directory.path().join("index.json"), index.to_string()).unwrap();
    let registry = Registry::new(directory.path().to_str().unwrap().parse().unwrap(), None);
    let package = "@lab/todo".parse().unwrap();
    let refused = registry.find(&package, None).await.unwrap_err();
    assert_eq!(refused.code, Code::FailedPrecondition);
    assert!(refused.message.contains("no checksum"), "{refused}");
    let unknown = registry.find(&package, Some("2.0.0")).await.unwrap_err();
    assert!(unknown.message.contains("has no version"), "{unknown}");
}

/// Creates the directory of a package as its author would.
fn authored(shop: &Workshop, version: &str) -> PathBuf {
    let directory = shop.root.path().join("authored");
    fs::create_dir_all(&directory).unwrap();
    let clip_json = json!({"name": "@lab/todo", "version": version, "description": "Tasks", "domain": "life",
        "runtime": "exec", "main": "run.sh", "license": "MIT"});
    fs::write(directory.join("clip.json"), clip_json.to_string()).unwrap();
    let script =
        format!("#!/bin/bash\n{SHELL}\nregister\nwhile next; do result '\"{version}\"'; done");
    write_program(&directory.join("run.sh"), &script);
    fs::write(directory.join("bindings.json"), "{}").unwrap();
    directory
}

#[tokio::test]
async fn a_directory_is_published_into_searched_and_installed_from() {
    let shop = workshop();
    let place = shop.root.path().join("registry");
    let address = place.display().to_string();
    let registry = Registry::new(address.parse().unwrap(), None);
    for version in ["1.0.0", "1.10.0"] {
        let directory = authored(&shop, version);
        let publication = shop.library.publication(&directory, None).await.unwrap();
        registry.publish(&publication).await.unwrap();
        let again = registry.publish(&publication).await.unwrap_err();
        assert_eq!(again.code, Code::AlreadyExists);
    }
    let directory = authored(&shop, "2.0.0-rc");
    let next = shop.library.publication(&directory, Some("next")).await;
    registry.publish(&next.unwrap()).await.unwrap();
    let source = format!("registry:{address}#@lab/todo");
    let record = shop.add(&source, None).await.unwrap();
    assert_eq!(record.version, "1.10.0");
    assert_eq!(shop.answer().await, "1.10.0");
    assert!(
        !shop
            .library
            .directory("todo")
            .join("bindings.json")
            .exists()
    );
    let record = shop.add(&format!("{source}@next"), None).await.unwrap();
    assert_eq!(record.version, "2.0.0-rc");
    let package = "@lab/todo".parse().unwrap();
    registry.tag(&package, "latest", "1.0.0").await.unwrap();
    assert_eq!(shop.add(&source, None).await.unwrap().version, "1.0.0");
    let missing = registry.tag(&package, "latest", "3.0.0").await;
    assert_eq!(missing.unwrap_err().code, Code::NotFound);

    let search = async |words: &str, domain: &str, kind| {
        let search = Search {
            words,
            domain,
            kind,
            ..Search::default()
        };
        registry.search(&search).await.unwrap()
    };
    let found = search("TASK", "life", Some(PackageKind::Clip)).await;
    assert_eq!((found.len(), found[0].name.as_str()), (1, "@lab/todo"));
    assert_eq!(found[0].version, "1.0.0");
    assert!(search("task", "work", None).await.is_empty());
    assert!(search("", "", Some(PackageKind::Edge)).await.is_empty());

    // The same files on a web server.
    let files = place.clone();
    let server = Server::start(move |request| {
        match fs::read(files.join(request.path.trim_start_matches("/clips/"))) {
            Ok(bytes) => Answer::ok(bytes),
            Err(_) => Answer::status(404, ""),
        }
    });
    let source = format!("registry:{}/clips/index.json#@lab/todo@1.10.0", server.url);
    assert_eq!(shop.add(&source, None).await.unwrap().source, source);
    assert_eq!(shop.answer().await, "1.10.0");
    let read_only = format!("{}/clips/index.json", server.url).parse().unwrap();
    let refused = Registry::new(read_only, None)
        .tag(&package, "x", "1.0.0")
        .await;
    assert_eq!(refused.unwrap_err().code, Code::Unimplemented);
}

#[tokio::test]
async fn an_index_cannot_lead_out_of_its_directory() {
    let shop = workshop();
    let good = packed("1.0.0");
    let secret = shop.root.path().join("secret.tgz");
    fs::write(&secret, &good).unwrap();
    let place = shop.root.path().join("registry");
    fs::create_dir(&place).unwrap();
    std::os::unix::fs::symlink(&secret, place.join("link.tgz")).unwrap();
    let sum = hex(&Sha256::digest(&good));
    let absolute = secret.display().to_string();
    for tarball in ["../secret.tgz", &absolute, "link.tgz", "", "nothing.tgz"] {
        let index = json!({"packages": {"@lab/todo": {"versions": {"1.0.0": {"dist": {"tarball": tarball, "shasum": sum}}}}}});
        fs::write(place.join("index.json"), index.to_string()).unwrap();
        let source = format!("registry:{}#@lab/todo", place.display());
        let error = shop.add(&source, None).await.unwrap_err();
        let refused = matches!(error.code, Code::FailedPrecondition | Code::NotFound);
        assert!(refused, "{tarball}: {error}");
    }
    for index in [
        "",
        "[]",
        "{\"packages\": 5}",
        "{\"packages\": {\"@lab/todo\": 5}}",
    ] {
        fs::write(place.join("index.json"), index).unwrap();
        let source = format!("registry:{}#@lab/todo", place.display());
        assert!(shop.add(&source, None).await.is_err(), "{index}");
    }
}

#[tokio::test]
async fn a_service_is_searched_and_published_to() {
    let server = Server::start(|request| {
        match request.path.as_str() {
        "/packages/@lab/todo/versions" => Answer::status(201, "{}"),
        "/packages/@lab/todo/dist-tags/beta" => Answer::ok("{}"),
        path if path.contains("domain=") => Answer::ok(
            json!({"packages": [{"name": "@b/c", "version": "2", "type": "edge-clip"}], "total": 1})
                .to_string(),
        ),
        path if path.starts_with("/search?q=a+b") || path.starts_with("/search?q=a%20b") => {
            Answer::ok(json!({"results": [{"name": "@a/b", "version": "1", "description": "x"}, {}]}).to_string())
        }
        _ => Answer::status(403, r#"{"error":{"message":"not yours"}}"#),
    }
    });
    let token = Token::new("t");
    let registry = Registry::new(server.url.parse().unwrap(), Some(token));
    let mut search = Search {
        words: "a b",
        ..Search::default()
    };
    let found = registry.search(&search).await.unwrap();
    assert_eq!((found.len(), found[0].name.as_str()), (1, "@a/b"));
    search.domain = "web";
    search.kind = Some(PackageKind::Edge);
    search.limit = 5;
    let found = registry.search(&search).await.unwrap();
    assert_eq!(
        (found[0].name.as_str(), found[0].kind),
        ("@b/c", PackageKind::Edge)
    );
    let asked = server.paths().pop().unwrap();
    for part in ["domain=web", "type=edge-clip", "limit=5"] {
        assert!(asked.contains(part), "{asked}");
    }

    let shop = workshop();
    let directory = authored(&shop, "1.0.0");
    let publication = shop.library.publication(&directory, Some("beta")).await;
    let publication = publication.unwrap();
    registry.publish(&publication).await.unwrap();
    let sent = server.seen.lock().unwrap().last().unwrap().clone();
    assert_eq!(
        (sent.method.as_str(), sent.header("authorization")),
        ("PUT", Some("Bearer t"))
    );
    let boundary = sent.header("content-type").unwrap();
    let boundary = boundary
        .strip_prefix("multipart/form-data; boundary=")
        .unwrap();
    let parts = parts(&sent.body, boundary);
    let metadata: Value = serde_json::from_slice(&parts["metadata"]).unwrap();
    assert_eq!(metadata["name"], "@lab/todo");
    assert_eq!(metadata["commands"], json!([{"name": "a"}]));
    assert_eq!(
        (&metadata["type"], &metadata["license"]),
        (&json!("clip"), &json!("MIT"))
    );
    assert_eq!(parts["tag"], b"beta");
    assert_eq!(parts["tarball"], publication.archive);
    let package = "@lab/todo".parse().unwrap();
    registry.tag(&package, "beta", "1.0.0").await.unwrap();
    let foreign = "@their/s".parse().unwrap();
    let refused = registry.tag(&foreign, "beta", "1.0.0").await.unwrap_err();
    assert_eq!(refused.code, Code::PermissionDenied);
    assert!(refused.message.contains("not yours"), "{refused}");
}

fn parts(body: &[u8], boundary: &str) -> BTreeMap<String, Vec<u8>> {
    let find = |text: &[u8], wanted: &[u8]| {
        let mut windows = text.windows(wanted.len());
        windows.position(|window| window == wanted)
    };
    let mut found = BTreeMap::new();
    let mut rest = body;
    let mark = format!("--{boundary}");
    while let Some(start) = find(rest, mark.as_bytes()) {
        rest = &rest[start + mark.len()..];
        let Some(head) = find(rest, b"\r\n\r\n") else {
            break;
        };
        let name = String::from_utf8_lossy(&rest[..head]).into_owned();
        let name = name.split("name=\"").nth(1).unwrap().split('"').next();
        rest = &rest[head + 4..];
        let end = find(rest, format!("\r\n{mark}").as_bytes()).unwrap();
        found.insert(name.unwrap().to_owned(), rest[..end].to_vec());
    }
    found
}

#[tokio::test]
async fn incomplete_packages_are_not_published() {
    let shop = workshop();
    for (change, words) in [
        (json!({"version": ""}), "a version"),
        (json!({"description": ""}), "a description"),
        (json!({"name": "todo"}), "@scope/name"),
        (json!({"version": "../../x"}), "not a version"),
        (
            json!({"dependencies": {"store": "local/db"}}),
            "on one machine only",
        ),
    ] {
        let directory = authored(&shop, "1.0.0");
        let path = directory.join("clip.json");
        let mut clip_json: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        for (key, value) in change.as_object().unwrap() {
            clip_json[key] = value.clone();
        }
        fs::write(path, clip_json.to_string()).unwrap();
        let error = shop
            .library
            .publication(&directory, None)
            .await
            .unwrap_err();
        assert!(error.message.contains(words), "{error}");
    }
}
