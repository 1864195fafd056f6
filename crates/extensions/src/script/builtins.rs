//! Which import names the program answers itself, and with what.

/// Import name, place below `js/`. Node's modules are also found without the prefix `node:`.
const TABLE: &[(&str, &str)] = &[
    ("typebox", "packages/typebox"),
    ("typebox/compile", "packages/typebox_compile"),
    ("typebox/format", "packages/schema_registry"),
    ("typebox/type", "packages/typebox"),
    ("typebox/value", "packages/typebox_value"),
    ("@sinclair/typebox", "packages/typebox"),
    ("@sinclair/typebox/compile", "packages/typebox_compile"),
    ("@sinclair/typebox/compiler", "packages/typebox_compile"),
    ("@sinclair/typebox/value", "packages/typebox_value"),
];

/// Scopes under which the packages of the host are known.
const SCOPES: &[&str] = &["@mariozechner/", "@earendil-works/"];

/// Packages of the host below either scope, and their places.
const HOST_PACKAGES: &[(&str, &str)] = &[
    ("pi-agent-core", "packages/pi-agent-core"),
    ("pi-ai", "packages/pi-ai"),
    ("pi-ai/anthropic", "packages/pi-ai"),
    ("pi-ai/azure-openai-responses", "packages/pi-ai"),
    ("pi-ai/google", "packages/pi-ai"),
    ("pi-ai/google-vertex", "packages/pi-ai"),
    ("pi-ai/mistral", "packages/pi-ai"),
    ("pi-ai/oauth", "packages/pi-ai-oauth"),
    ("pi-ai/openai-codex-responses", "packages/pi-ai"),
    ("pi-ai/openai-completions", "packages/pi-ai"),
    ("pi-ai/openai-responses", "packages/pi-ai"),
    ("pi-coding-agent", "packages/pi-coding-agent"),
    ("pi-tui", "packages/pi-tui"),
];

/// Names that belong to Node, whether there is a module for them here or not.
const NODE_NAMES: &[&str] = &[
    "assert",
    "assert/strict",
    "async_hooks",
    "buffer",
    "child_process",
    "cluster",
    "console",
    "constants",
    "crypto",
    "dgram",
    "diagnostics_channel",
    "dns",
    "dns/promises",
    "domain",
    "events",
    "fs",
    "fs/promises",
    "http",
    "http2",
    "https",
    "inspector",
    "module",
    "net",
    "os",
    "path",
    "path/posix",
    "path/win32",
    "perf_hooks",
    "process",
    "punycode",
    "querystring",
    "readline",
    "readline/promises",
    "repl",
    "sea",
    "sqlite",
    "stream",
    "stream/consumers",
    "stream/promises",
    "stream/web",
    "string_decoder",
    "test",
    "timers",
    "timers/promises",
    "tls",
    "tty",
    "url",
    "util",
    "util/types",
    "v8",
    "vm",
    "wasi",
    "worker_threads",
    "zlib",
];

/// What an import name means to the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Builtin {
    /// The embedded module of this place.
    Here(&'static str),
    /// One of Node's modules that is not here.
    Missing,
}

/// Whether the host answers for `name`.
pub(crate) fn find(name: &str) -> Option<Builtin> {
    for scope in SCOPES {
        if let Some(package) = name.strip_prefix(scope)
            && let Some((_, place)) = HOST_PACKAGES.iter().find(|(known, _)| *known == package)
        {
            return Some(Builtin::Here(place));
        }
    }
    let bare = name.strip_prefix("node:").unwrap_or(name);
    let known = |wanted: &str| TABLE.iter().find(|(known, _)| *known == wanted);
    if let Some((_, place)) = known(name).or_else(|| {
        NODE_NAMES
            .contains(&bare)
            .then(|| known(&format!("node:{bare}")))
            .flatten()
    }) {
        return Some(Builtin::Here(place));
    }
    (name.starts_with("node:") || NODE_NAMES.contains(&bare)).then_some(Builtin::Missing)
}

/// The name under which `place` is imported, for messages.
pub(crate) fn public_name(place: &str) -> String {
    if let Some((name, _)) = HOST_PACKAGES.iter().find(|(_, known)| *known == place) {
        return format!("{}{name}", SCOPES[0]);
    }
    TABLE
        .iter()
        .find(|(_, known)| *known == place)
        .map_or(place, |(name, _)| name)
        .to_owned()
}
