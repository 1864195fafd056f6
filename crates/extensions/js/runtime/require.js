// CommonJS: modules are cached by file, and cycles see the exports so far.
import { ops } from "pinion:ops";

const cache = Object.create(null);
const requires = new Map();

function directoryOf(path) {
  const end = path.lastIndexOf("/");
  return end > 0 ? path.slice(0, end) : "/";
}

function fileOf(place) {
  const text = typeof place === "object" && place !== null && "href" in place ? place.href : place;
  if (typeof text === "string" && text.startsWith("/")) return text;
  const path = typeof text === "string" && text.startsWith("file:") ? ops.modules.filePath(text) : null;
  if (path == null) {
    throw new TypeError(`The argument 'filename' must be a file URL or an absolute path. Received ${String(place)}`);
  }
  return path;
}

class Module {
  constructor(id) {
    this.id = id;
    this.path = directoryOf(id);
    this.exports = {};
    this.filename = id;
    this.loaded = false;
    this.children = [];
    this.paths = [];
  }

  require(name) {
    return createRequire(this.filename)(name);
  }
}

/** Returns what `require` gives for a built-in module: Node's are their default export, packages all their names. */
function builtinExports(id, namespace) {
  return "default" in namespace && !id.startsWith("pinion:packages/") ? namespace.default : namespace;
}

function run(id) {
  const known = cache[id];
  if (known) return known.exports;
  const loaded = ops.modules.load(id);
  if (loaded.kind === "builtin") return builtinExports(id, loaded.namespace);
  const module = new Module(id);
  if (loaded.kind === "module") {
    const { namespace } = loaded;
    module.exports = "module.exports" in namespace ? namespace["module.exports"] : namespace;
    module.loaded = true;
    cache[id] = module;
    return module.exports;
  }
  cache[id] = module;
  let done = false;
  try {
    if (loaded.kind === "json") {
      try {
        module.exports = JSON.parse(loaded.text);
      } catch (error) {
        error.message = `${id}: ${error.message}`;
        throw error;
      }
    } else {
      loaded.wrapper.call(module.exports, module.exports, createRequire(id), module, id, module.path);
    }
    done = true;
  } finally {
    if (!done) delete cache[id];
  }
  module.loaded = true;
  return module.exports;
}

export function createRequire(place) {
  const from = fileOf(place);
  const known = requires.get(from);
  if (known) return known;
  function require(name) {
    if (typeof name !== "string" || name === "") {
      throw new TypeError(`The argument 'id' must be a non-empty string. Received ${String(name)}`);
    }
    return run(ops.modules.resolve(name, from));
  }
  require.resolve = (name) => {
    const found = ops.modules.resolve(name, from);
    return found.startsWith("pinion:") ? name : found;
  };
  require.resolve.paths = () => [];
  require.cache = cache;
  require.main = undefined;
  require.extensions = Object.create(null);
  requires.set(from, require);
  return require;
}

// Runs the file for an `import` of it and returns the names it exports.
export function runForImport(id) {
  const exports = run(id);
  if (exports === null || (typeof exports !== "object" && typeof exports !== "function")) return [];
  const names = new Set(Object.keys(exports));
  if (typeof exports === "function") {
    for (const name of ["length", "name", "prototype", "arguments", "caller"]) names.delete(name);
  }
  return [...names];
}

export function exportsOf(id) {
  return run(id);
}

export function defaultOf(exports) {
  const isModule = exports !== null && (typeof exports === "object" || typeof exports === "function") && exports.__esModule;
  return isModule && "default" in exports ? exports.default : exports;
}

export { Module };
