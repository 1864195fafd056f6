// node:module

import { missing } from "pinion:node/internal_errors";
import { Module, createRequire } from "pinion:runtime/require";

export { Module, createRequire };
export const builtinModules = ["assert", "assert/strict", "async_hooks", "buffer", "child_process", "cluster", "console", "constants", "crypto", "dgram", "diagnostics_channel", "dns", "dns/promises", "domain", "events", "fs", "fs/promises", "http", "http2", "https", "inspector", "module", "net", "os", "path", "path/posix", "path/win32", "perf_hooks", "process", "punycode", "querystring", "readline", "readline/promises", "repl", "stream", "stream/consumers", "stream/promises", "stream/web", "string_decoder", "sys", "timers", "timers/promises", "tls", "trace_events", "tty", "url", "util", "util/types", "v8", "vm", "wasi", "worker_threads", "zlib"];
const prefixed = new Set(["sea", "sqlite", "test"]);
export const isBuiltin = (name) => builtinModules.includes(String(name).replace(/^node:/, "")) || (String(name).startsWith("node:") && prefixed.has(name.slice(5)));
export const findSourceMap = () => undefined;
export const syncBuiltinESMExports = () => {};
export const enableCompileCache = () => ({ status: 3 });
export const getCompileCacheDir = () => undefined;
export const register = missing("module", "register");
export const registerHooks = missing("module", "registerHooks");
export const findPackageJSON = missing("module", "findPackageJSON");
export const stripTypeScriptTypes = missing("module", "stripTypeScriptTypes");

Object.assign(Module, { Module, createRequire, builtinModules, isBuiltin, findSourceMap, syncBuiltinESMExports, enableCompileCache, getCompileCacheDir, register, registerHooks, findPackageJSON, stripTypeScriptTypes });
export default Module;
