// `typebox/value`: checking, converting and creating values.

import { errorsOf, expression, isObject, isValid, MAX_ERRORS, resolveReference, same } from "pinion:packages/schema_check";
import { convert } from "pinion:packages/schema_convert";
import { IsCodec, IsOptional, kindOf } from "pinion:packages/typebox_schema";

/** Normalises the arguments `(schema, value)` or `(context, schema, value)`. */
const normal = (body, arity) => (...given) => (given.length > arity ? body(given[1], given[2], given[0]) : body(given[0], given[1], {}));

export class AssertError extends Error {
  constructor(source, value, errors) {
    super(source);
    this.name = "AssertError";
    Object.defineProperty(this, "cause", { value: { source, errors, value }, enumerable: false });
    this.value = value;
    Object.defineProperty(this, "errors", { value: errors, enumerable: false });
    [this.error] = errors;
  }
}
export class ParseError extends AssertError {}
export class CreateError extends Error {
  constructor(schema, message) { super(message); this.schema = schema; }
}
export class DecodeError extends AssertError {}
export class EncodeError extends AssertError {}

/** A list of findings that older code iterates over and newer code indexes. */
function findings(errors) {
  Object.defineProperty(errors, "First", { value: () => errors[0], enumerable: false });
  for (const error of errors) {
    Object.defineProperty(error, "path", { value: error.instancePath, enumerable: false });
  }
  return errors;
}

export const Check = normal((schema, value, context) => isValid(schema, value, context), 2);
export const Errors = normal((schema, value, context) => findings(errorsOf(schema, value, context, MAX_ERRORS)), 2);
export const Convert = normal((schema, value, context) => convert(schema, Clone(value), context), 2);

export const Assert = normal((schema, value, context) => {
  if (!isValid(schema, value, context)) throw new AssertError("Assert", value, errorsOf(schema, value, context));
}, 2);

export function Clone(value) {
  if (Array.isArray(value)) return value.map(Clone);
  if (value instanceof Date) return new Date(value.getTime());
  if (value instanceof Uint8Array) return value.slice();
  if (value instanceof Map) return new Map([...value].map(([key, item]) => [Clone(key), Clone(item)]));
  if (value instanceof Set) return new Set([...value].map(Clone));
  if (!isObject(value) || (Object.getPrototypeOf(value) !== Object.prototype && Object.getPrototypeOf(value) !== null)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, Clone(member)]));
}

export const Equal = (left, right) => same(left, right);

/** Fills in missing members that have a default. */
export const Default = normal(function fill(schema, value, context = {}) {
  return withDefaults(schema, value, schema, context);
}, 2);

function withDefaults(schema, value, root, context) {
  if (!isObject(schema)) return value;
  const down = (inner, member) => withDefaults(inner, member, root, context);
  let filled = value;
  if (filled === undefined && "default" in schema) {
    filled = typeof schema.default === "function" ? schema.default() : Clone(schema.default);
  }
  if (typeof schema.$ref === "string") filled = down(resolveReference(root, schema.$ref, context), filled);
  if (Array.isArray(filled)) {
    for (let index = 0; index < filled.length; index += 1) {
      const items = Array.isArray(schema.items) ? schema.items[index] : schema.items;
      filled[index] = down(items, filled[index]);
    }
  } else if (isObject(filled)) {
    for (const [name, inner] of Object.entries(schema.properties ?? {})) {
      const member = down(inner, filled[name]);
      if (member !== undefined) filled[name] = member;
    }
    for (const [pattern, inner] of Object.entries(schema.patternProperties ?? {})) {
      for (const name of Object.keys(filled)) if (expression(pattern).test(name)) filled[name] = down(inner, filled[name]);
    }
  }
  for (const part of schema.allOf ?? []) filled = down(part, filled);
  for (const branch of schema.anyOf ?? []) {
    const attempt = down(branch, Clone(filled));
    if (isValid(branch, attempt, context)) return attempt;
  }
  return filled;
}

/** Removes members that the schema does not contain. */
export const Clean = normal((schema, value, context) => cleaned(schema, value, schema, context), 2);

function cleaned(schema, value, root, context) {
  if (!isObject(schema)) return value;
  const down = (inner, member) => cleaned(inner, member, root, context);
  if (typeof schema.$ref === "string") return down(resolveReference(root, schema.$ref, context), value);
  if (Array.isArray(schema.anyOf)) {
    const fitting = schema.anyOf.find((branch) => isValid(branch, value, context)) ?? schema.anyOf.find((branch) => isValid(branch, down(branch, Clone(value)), context));
    return fitting === undefined ? value : down(fitting, value);
  }
  if (Array.isArray(schema.allOf) && isObject(value)) {
    return Object.assign({}, ...schema.allOf.map((part) => down(part, Clone(value))));
  }
  if (Array.isArray(value)) {
    const items = value.map((item, index) => (Array.isArray(schema.items) ? down(schema.items[index], item) : down(schema.items, item)));
    return Array.isArray(schema.items) ? items.slice(0, schema.items.length) : items;
  }
  if (!isObject(value) || (schema.properties === undefined && schema.patternProperties === undefined)) return value;
  for (const name of Object.keys(value)) {
    const pattern = Object.keys(schema.patternProperties ?? {}).find((source) => expression(source).test(name));
    if (name in (schema.properties ?? {})) value[name] = down(schema.properties[name], value[name]);
    else if (pattern !== undefined) value[name] = down(schema.patternProperties[pattern], value[name]);
    else if (!isObject(schema.additionalProperties) || !isValid(schema.additionalProperties, value[name], context)) delete value[name];
  }
  return value;
}

/** Creates the simplest value of a type. */
export function Create(...given) {
  const [context, schema] = given.length > 1 && isObject(given[1]) ? given : [{}, given[0]];
  return created(schema, schema, context, 0);
}

function created(schema, root, context, depth) {
  if (depth > 64) throw new CreateError(schema, "the type has no end");
  const down = (inner) => created(inner, root, context, depth + 1);
  if (!isObject(schema)) return undefined;
  if ("default" in schema) return typeof schema.default === "function" ? schema.default() : Clone(schema.default);
  if ("const" in schema) return schema.const;
  if (Array.isArray(schema.enum)) return schema.enum[0];
  if (typeof schema.$ref === "string") return down(resolveReference(root, schema.$ref, context));
  if (Array.isArray(schema.anyOf)) {
    if (schema.anyOf.length === 0) throw new CreateError(schema, "a union without members has no values");
    return down(schema.anyOf[0]);
  }
  if (Array.isArray(schema.allOf)) {
    const parts = schema.allOf.map(down);
    return parts.every(isObject) ? Object.assign({}, ...parts) : parts[0];
  }
  switch (Array.isArray(schema.type) ? schema.type[0] : schema.type) {
    case "object": {
      const names = schema.required ?? [];
      return Object.fromEntries(names.map((name) => [name, down(schema.properties?.[name] ?? {})]));
    }
    case "array":
      if (Array.isArray(schema.items)) return schema.items.map(down);
      return Array.from({ length: schema.minItems ?? 0 }, () => down(schema.items));
    case "string": return createdText(schema);
    case "number": case "integer":
      if (schema.exclusiveMinimum !== undefined) return schema.exclusiveMinimum + 1;
      return schema.minimum ?? 0;
    case "bigint": return schema.minimum ?? 0n;
    case "boolean": return false;
    case "null": return null;
    case "function": return () => down(schema.returnType);
    case "Date": return new Date(0);
    case "Uint8Array": return new Uint8Array(schema.minByteLength ?? 0);
    default:
      if (isObject(schema.not) && Object.keys(schema.not).length === 0) throw new CreateError(schema, "never has no values");
      return undefined;
  }
}

function createdText(schema) {
  const text = " ".repeat(schema.minLength ?? 0);
  if (isValid(schema, text)) return text;
  if (Array.isArray(schema["~values"])) return schema["~values"][0];
  throw new CreateError(schema, "a text with a pattern or a format needs a default");
}

/** Retains valid parts and creates the rest anew. */
export const Repair = normal((schema, value, context) => repaired(schema, Clone(value), schema, context), 2);
export const Cast = Repair;

function repaired(schema, value, root, context) {
  if (isValid(schema, value, context)) return value;
  const converted = convert(schema, Clone(value), context);
  if (isValid(schema, converted, context)) return converted;
  if (isObject(value) && isObject(schema?.properties)) {
    const result = {};
    for (const [name, inner] of Object.entries(schema.properties)) {
      if (name in value) result[name] = repaired(inner, value[name], root, context);
      else if (!IsOptional(inner) && (schema.required ?? []).includes(name)) result[name] = created(inner, root, context, 0);
    }
    if (schema.additionalProperties !== false) for (const name of Object.keys(value)) if (!(name in result)) result[name] = value[name];
    return result;
  }
  if (Array.isArray(value) && isObject(schema?.items)) {
    const items = value.map((item) => repaired(schema.items, item, root, context));
    if (isValid(schema, items, context)) return items;
  }
  return created(schema, root, context, 0);
}

const coded = (schema, value, root, direction, depth = 0) => {
  if (!isObject(schema) || depth > 64) return value;
  const down = (inner, member) => coded(inner, member, root, direction, depth + 1);
  let result = value;
  if (direction === "encode" && IsCodec(schema)) result = schema["~codec"].encode(result);
  if (typeof schema.$ref === "string") result = down(resolveReference(root, schema.$ref), result);
  for (const part of schema.allOf ?? []) result = down(part, result);
  const branch = (schema.anyOf ?? []).find((candidate) => isValid(candidate, direction === "encode" ? down(candidate, result) : result));
  if (branch !== undefined) result = down(branch, result);
  if (Array.isArray(result)) {
    result = result.map((item, index) => down(Array.isArray(schema.items) ? schema.items[index] : schema.items, item));
  } else if (isObject(result) && isObject(schema.properties)) {
    result = { ...result };
    for (const [name, inner] of Object.entries(schema.properties)) if (name in result) result[name] = down(inner, result[name]);
  }
  if (direction === "decode" && IsCodec(schema)) result = schema["~codec"].decode(result);
  return result;
};

export const DecodeUnsafe = (context, schema, value) => coded(schema, value, schema, "decode");
export const EncodeUnsafe = (context, schema, value) => coded(schema, value, schema, "encode");
const prepared = (schema, value, context) => Clean(schema, Convert(schema, Default(schema, Clone(value))));

export const Decode = normal((schema, value, context) => {
  const ready = prepared(schema, value, context);
  if (!isValid(schema, ready, context)) throw new DecodeError("Decode", ready, errorsOf(schema, ready, context));
  return coded(schema, ready, schema, "decode");
}, 2);
export const Encode = normal((schema, value, context) => {
  const ready = prepared(schema, coded(schema, Clone(value), schema, "encode"), context);
  if (!isValid(schema, ready, context)) throw new EncodeError("Encode", ready, errorsOf(schema, ready, context));
  return ready;
}, 2);
export const Parse = normal((schema, value, context) => {
  if (isValid(schema, value, context)) return value;
  throw new ParseError("Parse", value, errorsOf(schema, value, context));
}, 2);
export const Parser = Parse;

export function HasCodec(...given) {
  const schema = given.at(-1);
  const seek = (type, depth) => isObject(type) && depth < 32
    && (IsCodec(type) || Object.values(type).some((member) => (Array.isArray(member) ? member.some((item) => seek(item, depth + 1)) : seek(member, depth + 1))));
  return seek(schema, 0);
}

export const Pipeline = (stages) => (...given) => {
  const [context, schema, value] = given.length > 2 ? given : [{}, ...given];
  return stages.reduce((result, stage) => stage(context, schema, result), value);
};

const FNV_PRIME = 1099511628211n;
/** Returns a 64-bit hash of a value. */
export function Hash(value) {
  const sorted = (item) => (Array.isArray(item) ? item.map(sorted) : isObject(item)
    ? Object.fromEntries(Object.keys(item).sort().map((name) => [name, sorted(item[name])])) : typeof item === "bigint" ? `${item}n` : item);
  let hash = 14695981039346656037n;
  for (const character of JSON.stringify(sorted(value)) ?? "undefined") {
    hash = BigInt.asUintN(64, (hash ^ BigInt(character.codePointAt(0))) * FNV_PRIME);
  }
  return hash.toString(16).padStart(16, "0");
}

const steps = (path) => (path === "" ? [] : path.slice(1).split("/").map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~")));
const parentOf = (value, path) => steps(path).slice(0, -1).reduce((at, step) => at?.[step], value);

/** Access to parts of a value by JSON pointers. */
export const Pointer = {
  Indices: (path) => steps(path),
  Format: steps,
  Has: (value, path) => { const parent = steps(path).length === 0 ? { "": value } : parentOf(value, path); return parent !== undefined && parent !== null && (steps(path).at(-1) ?? "") in Object(parent); },
  Get: (value, path) => steps(path).reduce((at, step) => at?.[step], value),
  Set(value, path, update) {
    if (path === "") return update;
    let at = value;
    for (const step of steps(path).slice(0, -1)) { if (at[step] === undefined) at[step] = {}; at = at[step]; }
    at[steps(path).at(-1)] = update;
    return value;
  },
  Delete(value, path) {
    const parent = parentOf(value, path);
    const last = steps(path).at(-1);
    if (Array.isArray(parent)) parent.splice(Number(last), 1); else if (isObject(parent)) delete parent[last];
    return value;
  },
};

export const Insert = { type: "object", properties: { type: { const: "insert" }, path: { type: "string" }, value: {} } };
export const Update = { type: "object", properties: { type: { const: "update" }, path: { type: "string" }, value: {} } };
export const Delete = { type: "object", properties: { type: { const: "delete" }, path: { type: "string" } } };
export const Edit = { anyOf: [Insert, Update, Delete] };

/** Returns the edits that turn one value into the other. */
export function Diff(left, right, path = "") {
  if (same(left, right)) return [];
  const both = (Array.isArray(left) && Array.isArray(right)) || (isObject(left) && isObject(right));
  if (!both) return [{ type: "update", path, value: right }];
  const edits = [];
  const place = (name) => `${path}/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`;
  for (const name of Object.keys(right)) if (!(name in left)) edits.push({ type: "insert", path: place(name), value: right[name] });
  for (const name of Object.keys(left)) if (name in right) edits.push(...Diff(left[name], right[name], place(name)));
  for (const name of Object.keys(left).reverse()) if (!(name in right)) edits.push({ type: "delete", path: place(name) });
  return edits;
}

export function Patch(value, edits) {
  return edits.reduce((result, edit) => (edit.type === "delete" ? Pointer.Delete(result, edit.path) : Pointer.Set(result, edit.path, Clone(edit.value))), Clone(value));
}

export const IsOptionalUndefined = (schema, name, value) => value[name] === undefined && IsOptional(schema.properties?.[name]);
export const UnionPrioritySort = (types) => [...types];
export const UnionScoreSelect = (context, schema, value) => schema.anyOf.find((branch) => isValid(branch, value, context)) ?? schema.anyOf[0];

export const Value = {
  Assert, Cast, Check, Clean, Clone, Convert, Create, Decode, Default, Diff, Encode, Equal, Errors, HasCodec, Hash, Parse, Patch, Pointer, Repair,
};
Value.Mutate = (target, value) => { for (const name of Object.keys(target)) if (!(name in value)) delete target[name]; return Object.assign(target, Clone(value)); };
export const ValuePointer = Pointer;
export const kind = kindOf;
export default Value;
