// The global `WebAssembly`, on the program's interpreter.

import { ops } from "pinion:ops";

const native = ops.wasm;
const KINDS = { function: 1, memory: 2, table: 3, global: 4 };

class CompileError extends Error { get name() { return "CompileError"; } }
class LinkError extends Error { get name() { return "LinkError"; } }
class RuntimeError extends Error { get name() { return "RuntimeError"; } }

/** Runs an operation; its failure becomes an error of the given class. */
function attempt(Kind, work) {
  try { return work(); } catch (error) {
    if (error instanceof RangeError || error instanceof TypeError || Object.getPrototypeOf(error) !== Error.prototype) throw error;
    throw new Kind(error.message);
  }
}

function bytesOf(source) {
  if (ArrayBuffer.isView(source)) return new Uint8Array(source.buffer, source.byteOffset, source.byteLength);
  if (source instanceof ArrayBuffer || Object.prototype.toString.call(source) === "[object SharedArrayBuffer]") return new Uint8Array(source);
  throw new TypeError("WebAssembly: Argument 0 must be a buffer source");
}

const HIDDEN = Symbol("made by the host");
/** Objects of the interpreter that scripts have seen, so that each is always the same object. */
const seen = { 1: new Map(), 2: new Map(), 3: new Map(), 4: new Map() };
const ids = new WeakMap();

function wrap(kind, id) {
  const known = seen[kind].get(id);
  if (known) return known;
  const made = kind === 1 ? exportedFunction(id) : new [null, null, Memory, Table, Global][kind](HIDDEN, id);
  seen[kind].set(id, made);
  ids.set(made, id);
  return made;
}
function register(kind, object, id) {
  seen[kind].set(id, object);
  ids.set(object, id);
}

const externs = [];
const numbers = new Map();
function externId(value) {
  if (value === null) return null;
  if (!numbers.has(value)) numbers.set(value, externs.push(value) - 1);
  return numbers.get(value);
}

/** Converts a script's value to the form that the interpreter takes. */
function toWasm(type, value) {
  switch (type) {
    case "i32": return value | 0;
    case "i64": return BigInt.asIntN(64, BigInt(value));
    case "f32":
    case "f64": return Number(value);
    case "externref": return externId(value === undefined ? null : value);
    default:
      if (value === null || value === undefined) return null;
      if (typeof value !== "function" || !ids.has(value)) throw new TypeError("WebAssembly objects are only compatible with exported functions");
      return ids.get(value);
  }
}
function toScript(type, value) {
  if (value === null) return null;
  if (type === "externref") return externs[value];
  return type === "anyfunc" ? wrap(1, value) : value;
}

/** Functions that modules import, with the types of their parameters and results. */
const imports = [];
let thrown;

/** Calls an imported function for the interpreter. Returns its results, or null if it threw. */
function dispatch(index, given) {
  const { call, parameters, results } = imports[index];
  try {
    const returned = call(...given.map((value, at) => toScript(parameters[at], value)));
    if (results.length === 0) return [];
    return results.length === 1 ? [toWasm(results[0], returned)] : [...returned].map((value, at) => toWasm(results[at], value));
  } catch (error) {
    thrown = { error };
    return null;
  }
}

/** Returns the results of a call, or throws what an imported function threw. */
function finished(results) {
  if (results !== null) return results;
  const { error } = thrown;
  thrown = undefined;
  throw error;
}

function exportedFunction(id) {
  const [parameters, results] = JSON.parse(native.signature(id));
  const named = { [id](...given) {
    const values = parameters.map((type, at) => toWasm(type, given[at]));
    const returned = finished(attempt(RuntimeError, () => native.call(id, values, dispatch)));
    if (results.length === 0) return undefined;
    return results.length === 1 ? toScript(results[0], returned[0]) : returned.map((value, at) => toScript(results[at], value));
  } }[id];
  Object.defineProperty(named, "length", { value: parameters.length, configurable: true });
  return named;
}

const moduleIds = new WeakMap();
class Module {
  constructor(source) { moduleIds.set(this, attempt(CompileError, () => native.compile(bytesOf(source)))); }
  static #described(module) {
    if (!moduleIds.has(module)) throw new TypeError("WebAssembly.Module: Argument 0 must be a WebAssembly.Module");
    return JSON.parse(native.describe(moduleIds.get(module)));
  }
  static imports(module) { return Module.#described(module).imports.map(({ module: from, name, kind }) => ({ module: from, name, kind })); }
  static exports(module) { return Module.#described(module).exports.map(({ name, kind }) => ({ name, kind })); }
  static customSections(module, name) {
    Module.#described(module);
    return native.customSections(moduleIds.get(module), String(name)).map(({ buffer }) => buffer);
  }
}

class Memory {
  #id;
  constructor(descriptor, id) {
    if (descriptor === HIDDEN) { this.#id = id; return; }
    const { initial, minimum = initial, maximum, shared } = descriptor;
    if (shared) throw new TypeError("WebAssembly.Memory: shared memories are not available in this host");
    this.#id = native.memory(Number(minimum ?? 0), maximum === undefined ? null : Number(maximum));
    register(2, this, this.#id);
  }
  get buffer() { return native.memoryBuffer(this.#id); }
  grow(pages) { return native.memoryGrow(this.#id, Number(pages)); }
}

class Table {
  #id; #type;
  constructor(descriptor, id) {
    if (descriptor === HIDDEN) { this.#id = id; this.#type = "anyfunc"; return; }
    const { element, initial, minimum = initial, maximum } = descriptor;
    this.#type = element === "funcref" ? "anyfunc" : element;
    this.#id = native.table(this.#type, Number(minimum ?? 0), maximum === undefined ? null : Number(maximum), toWasm(this.#type, id));
    register(3, this, this.#id);
  }
  get length() { return native.tableSize(this.#id); }
  get(index) { return toScript(this.#type, native.tableGet(this.#id, Number(index))); }
  set(index, value) { native.tableSet(this.#id, Number(index), toWasm(this.#type, value)); }
  grow(count, value) { return native.tableGrow(this.#id, Number(count), toWasm(this.#type, value)); }
}

class Global {
  #id; #type;
  constructor(descriptor, value) {
    if (descriptor === HIDDEN) { this.#id = value; this.#type = native.globalType(value); return; }
    const { value: type, mutable = false } = descriptor;
    this.#type = type === "funcref" ? "anyfunc" : type;
    const initial = value === undefined ? { i32: 0, i64: 0n, f32: 0, f64: 0 }[this.#type] : value;
    this.#id = native.global(this.#type, Boolean(mutable), toWasm(this.#type, initial));
    register(4, this, this.#id);
  }
  get value() { return toScript(this.#type, native.globalGet(this.#id)); }
  set value(value) { native.globalSet(this.#id, toWasm(this.#type, value)); }
  valueOf() { return this.value; }
}

const CLASSES = { memory: Memory, table: Table, global: Global };
const simple = (value) => typeof value === "number" || typeof value === "bigint";

/** Returns the import in the form that the interpreter takes. */
function provided({ module, name, kind }, given, signature) {
  const from = given?.[module];
  if (from === null || (typeof from !== "object" && typeof from !== "function")) throw new TypeError(`WebAssembly.Instance(): Import "${module}": module is not an object or function`);
  const value = from[name];
  const refuse = (wanted) => { throw new LinkError(`WebAssembly.Instance(): Import "${module}" "${name}": ${wanted}`); };
  if (kind === "function") {
    if (typeof value !== "function") refuse("function import requires a callable");
    if (ids.has(value)) return [1, ids.get(value)];
    const [parameters, results] = signature();
    return [0, imports.push({ call: value, parameters, results }) - 1];
  }
  if (kind === "global" && simple(value)) return [4, ids.get(new Global({ value: typeof value === "bigint" ? "i64" : signature() }, value))];
  if (!(value instanceof CLASSES[kind])) refuse(`${kind} import must be a WebAssembly.${CLASSES[kind].name} object`);
  return [KINDS[kind], ids.get(value)];
}

class Instance {
  constructor(module, given = {}) {
    if (!moduleIds.has(module)) throw new TypeError("WebAssembly.Instance(): Argument 0 must be a WebAssembly.Module");
    const id = moduleIds.get(module);
    const wanted = JSON.parse(native.describe(id)).imports;
    const list = wanted.map((entry) => provided(entry, given, () => entry.type));
    const found = finished(attempt(LinkError, () => native.instantiate(id, list, dispatch)));
    const exports = Object.create(null);
    for (const [name, kind, object] of found) exports[name] = wrap(kind, object);
    Object.defineProperty(this, "exports", { value: Object.freeze(exports), enumerable: true, configurable: true });
  }
}

const compile = async (source) => new Module(source);
async function instantiate(source, given) {
  if (source instanceof Module) return new Instance(source, given);
  const module = new Module(source);
  return { module, instance: new Instance(module, given) };
}
async function bytesOfResponse(source) {
  const response = await source;
  if (typeof response?.arrayBuffer !== "function") throw new TypeError("WebAssembly: Argument 0 must be a Response");
  if (response.ok === false) throw new TypeError(`WebAssembly: HTTP status code is not ok: ${response.status}`);
  return response.arrayBuffer();
}

export const WebAssembly = {
  CompileError, LinkError, RuntimeError, Module, Instance, Memory, Table, Global, compile, instantiate,
  validate: (source) => native.validate(bytesOf(source)),
  compileStreaming: async (source) => compile(await bytesOfResponse(source)),
  instantiateStreaming: async (source, given) => instantiate(await bytesOfResponse(source), given),
};
for (const [name, value] of Object.entries(WebAssembly)) {
  if (typeof value === "function" && value.prototype && /^(Module|Instance|Memory|Table|Global)$/.test(name)) Object.defineProperty(value.prototype, Symbol.toStringTag, { value: `WebAssembly.${name}`, configurable: true });
}
Object.defineProperty(WebAssembly, Symbol.toStringTag, { value: "WebAssembly", configurable: true });
