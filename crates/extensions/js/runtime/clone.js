// structuredClone.
const errors = { Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError };

function refuse(value) {
  const name = typeof value === "function" ? value.toString().slice(0, 40) : String(value);
  throw new DOMException(`${name} could not be cloned.`, "DataCloneError");
}

function copy(value, seen) {
  if (typeof value === "symbol" || typeof value === "function") refuse(value);
  if (value === null || typeof value !== "object") return value;
  const known = seen.get(value);
  if (known !== undefined) return known;
  const keep = (made) => {
    seen.set(value, made);
    return made;
  };
  const tag = Object.prototype.toString.call(value).slice(8, -1);
  if (value instanceof Date) return keep(new Date(value.getTime()));
  if (value instanceof RegExp) return keep(new RegExp(value.source, value.flags));
  if (value instanceof ArrayBuffer) return keep(value.slice(0));
  if (ArrayBuffer.isView(value)) {
    const buffer = copy(value.buffer, seen);
    const Kind = tag === "DataView" ? DataView : globalThis[tag] ?? Uint8Array;
    return keep(new Kind(buffer, value.byteOffset, Kind === DataView ? value.byteLength : value.length));
  }
  if (value instanceof Map) {
    const made = keep(new Map());
    for (const [key, member] of [...value]) made.set(copy(key, seen), copy(member, seen));
    return made;
  }
  if (value instanceof Set) {
    const made = keep(new Set());
    for (const member of [...value]) made.add(copy(member, seen));
    return made;
  }
  if (value instanceof Error) {
    const Kind = errors[value.name] ?? Error;
    const error = keep(new Kind(value.message));
    Object.defineProperty(error, "stack", { value: value.stack, writable: true, configurable: true });
    if ("cause" in value) Object.defineProperty(error, "cause", { value: copy(value.cause, seen), writable: true, configurable: true });
    return error;
  }
  if (["Boolean", "Number", "String", "BigInt"].includes(tag)) return keep(Object(value.valueOf()));
  if (["Promise", "WeakMap", "WeakSet", "WeakRef"].includes(tag)) refuse(`#<${tag}>`);
  if (Array.isArray(value)) {
    const made = keep(new Array(value.length));
    for (const key of Object.keys(value)) made[key] = copy(value[key], seen);
    return made;
  }
  const made = keep({});
  for (const key of Object.keys(value)) made[key] = copy(value[key], seen);
  return made;
}

export function structuredClone(value) {
  if (arguments.length === 0) throw new TypeError("The \"value\" argument must be specified");
  return copy(value, new Map());
}
