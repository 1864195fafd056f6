//! The table of import names that pinion provides itself.

/// Import names and their paths below `js/`. Node's modules are also found without the prefix `node:`.
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
    ("node:assert", "node/assert"),
    ("node:assert/strict", "node/assert_strict"),
    ("node:async_hooks", "node/async_hooks"),
    ("node:buffer", "node/buffer"),
    ("node:child_process", "node/child_process"),
    ("node:cluster", "node/cluster"),
    ("node:console", "node/console"),
    ("node:constants", "node/constants"),
    ("node:crypto", "node/crypto"),
    ("node:dgram", "node/dgram"),
    ("node:diagnostics_channel", "node/diagnostics_channel"),
    ("node:dns", "node/dns"),
    ("node:dns/promises", "node/dns_promises"),
    ("node:domain", "node/domain"),
    ("node:events", "node/events"),
    ("node:fs", "node/fs"),
    ("node:fs/promises", "node/fs_promises"),
    ("node:http", "node/http"),
    ("node:http2", "node/http2"),
    ("node:https", "node/https"),
    ("node:inspector", "node/inspector"),
    ("node:module", "node/module"),
    ("node:net", "node/net"),
    ("node:os", "node/os"),
    ("node:path", "node/path"),
    ("node:path/posix", "node/path_posix"),
    ("node:path/win32", "node/path_win32"),
    ("node:perf_hooks", "node/perf_hooks"),
    ("node:process", "node/process"),
    ("node:punycode", "node/punycode"),
    ("node:querystring", "node/querystring"),
    ("node:readline", "node/readline"),
    ("node:readline/promises", "node/readline_promises"),
    ("node:repl", "node/repl"),
    ("node:sea", "node/sea"),
    ("node:sqlite", "node/sqlite"),
    ("node:stream", "node/stream"),
    ("node:stream/consumers", "node/stream_consumers"),
    ("node:stream/promises", "node/stream_promises"),
    ("node:stream/web", "node/stream_web"),
    ("node:string_decoder", "node/string_decoder"),
    ("node:test", "node/test"),
    ("node:timers", "node/timers"),
    ("node:timers/promises", "node/timers_promises"),
    ("node:tls", "node/tls"),
    ("node:trace_events", "node/trace_events"),
    ("node:tty", "node/tty"),
    ("node:url", "node/url"),
    ("node:util", "node/util"),
    ("node:util/types", "node/util_types"),
    ("node:v8", "node/v8"),
    ("node:vm", "node/vm"),
    ("node:wasi", "node/wasi"),
    ("node:worker_threads", "node/worker_threads"),
    ("node:zlib", "node/zlib"),
    ("node:sys", "node/util"),
];

/// The npm scopes of the host's packages.
const SCOPES: &[&str] = &["@mariozechner/", "@earendil-works/"];

/// Packages of the host under either scope, and their paths.
const HOST_PACKAGES: &[(&str, &str)] = &[
    ("pi-agent-core", "packages/pi-agent-core"),
    ("pi-ai", "packages/pi-ai"),
    ("pi-ai/anthropic", "packages/pi-ai"),
    ("pi-ai/azure-openai-responses", "packages/pi-ai"),
    ("pi-ai/compat", "packages/pi-ai"),
    ("pi-ai/google", "packages/pi-ai"),
    ("pi-ai/google-vertex", "packages/pi-ai"),
    ("pi-ai/mistral", "packages/pi-ai"),
    ("pi-ai/models", "packages/pi-ai"),
    ("pi-ai/oauth", "packages/pi-ai-oauth"),
    ("pi-ai/openai-codex-responses", "packages/pi-ai"),
    ("pi-ai/openai-completions", "packages/pi-ai"),
    ("pi-ai/openai-responses", "packages/pi-ai"),
    ("pi-coding-agent", "packages/pi-coding-agent"),
    ("pi-tui", "packages/pi-tui"),
];

/// Directories of the host's packages whose modules all have the same path.
const HOST_DIRECTORIES: &[(&str, &str)] = &[
    ("pi-agent-core/", "packages/pi-agent-core"),
    ("pi-ai/api/", "packages/ai_api"),
    ("pi-ai/providers/", "packages/ai_catalog"),
    ("pi-ai/utils/", "packages/pi-ai-utils"),
];

/// Names of Node's modules, including those that pinion does not provide.
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
    "sys",
    "test",
    "timers",
    "timers/promises",
    "tls",
    "trace_events",
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

/// The meaning of an import name to the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Builtin {
    /// The embedded module at this path.
    Here(&'static str),
    /// One of Node's modules that pinion does not provide.
    Missing,
}

/// Looks up `name`; `None` if it is neither the host's nor Node's.
pub(crate) fn find(name: &str) -> Option<Builtin> {
    for scope in SCOPES {
        if let Some(package) = name.strip_prefix(scope)
            && let Some(path) = host_path(package)
        {
            return Some(Builtin::Here(path));
        }
    }
    let bare = name.strip_prefix("node:").unwrap_or(name);
    let known = |wanted: &str| TABLE.iter().find(|(known, _)| *known == wanted);
    if let Some((_, path)) = known(name).or_else(|| {
        NODE_NAMES
            .contains(&bare)
            .then(|| known(&format!("node:{bare}")))
            .flatten()
    }) {
        return Some(Builtin::Here(path));
    }
    (name.starts_with("node:") || NODE_NAMES.contains(&bare)).then_some(Builtin::Missing)
}

/// Returns the path of a module of the host's packages, named without their scope.
fn host_path(package: &str) -> Option<&'static str> {
    let exact = HOST_PACKAGES.iter().find(|(known, _)| *known == package);
    let directory = || {
        HOST_DIRECTORIES
            .iter()
            .find(|(known, _)| package.starts_with(known))
    };
    exact.or_else(directory).map(|(_, path)| *path)
}

/// Returns the name under which `path` is imported, for messages.
pub(crate) fn public_name(path: &str) -> String {
    if let Some((name, _)) = HOST_PACKAGES.iter().find(|(_, known)| *known == path) {
        return format!("{}{name}", SCOPES[0]);
    }
    if let Some((name, _)) = HOST_DIRECTORIES.iter().find(|(_, known)| *known == path) {
        return format!("{}{}", SCOPES[0], name.trim_end_matches('/'));
    }
    TABLE
        .iter()
        .find(|(_, known)| *known == path)
        .map_or(path, |(name, _)| name)
        .to_owned()
}
