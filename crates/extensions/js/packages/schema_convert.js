// Conversion of values to the type that a schema requires: "5" to 5 for a number.
//
// There are two sets of rules, as in pi: schemas made by the builders convert generously, plain JSON Schema only where
// the meaning is beyond doubt.

import { expression, isObject, isValid, resolveReference } from "pinion:packages/schema_check";
import { kindOf } from "pinion:packages/typebox_schema";

const isNumeric = (text) => text.trim() !== "" && Number.isFinite(Number(text));

function toNumber(value) {
  if (typeof value === "boolean") return value ? 1 : 0;
  if (value === null || value === undefined) return 0;
  if (typeof value === "bigint") return Number(value);
  if (typeof value !== "string") return value;
  const text = value.trim().toLowerCase();
  if (text === "true") return 1;
  if (text === "false" || text === "") return 0;
  return isNumeric(value) ? Number(value) : value;
}

function toBoolean(value) {
  if (value === 1 || value === 1n) return true;
  if (value === 0 || value === 0n || value === null || value === undefined) return false;
  if (typeof value !== "string") return value;
  const text = value.toLowerCase();
  if (text === "true" || text === "1") return true;
  return text === "false" || text === "0" ? false : value;
}

const SCALARS = {
  String: (value) => (["number", "boolean", "bigint"].includes(typeof value) || value === null ? String(value) : value),
  Number: toNumber,
  Integer: (value) => { const number = toNumber(value); return typeof number === "number" ? Math.trunc(number) : number; },
  Boolean: toBoolean,
  Null: (value) => (["", 0, false, undefined].includes(value) || (typeof value === "string" && value.toLowerCase() === "null") ? null : value),
  Undefined: (value) => (value === null || value === "undefined" ? undefined : value),
  BigInt: (value) => { try { return typeof value === "string" || typeof value === "number" ? BigInt(value) : value; } catch { return value; } },
};
const OF_LITERAL = { string: SCALARS.String, number: SCALARS.Number, boolean: SCALARS.Boolean, bigint: SCALARS.BigInt };

/** Converts a value by the rules for built schemas. May change objects and arrays in place. */
export function convert(schema, value, context = {}, root = schema) {
  const down = (inner, member) => convert(inner, member, context, root);
  const kind = kindOf(schema);
  if (kind in SCALARS) return SCALARS[kind](value);
  switch (kind) {
    case "Literal": {
      return OF_LITERAL[typeof schema.const](value);
    }
    case "Enum":
      return schema.enum.find((allowed) => allowed === value) ?? schema.enum.find((allowed) => String(allowed) === String(value)) ?? value;
    case "Array":
      return (Array.isArray(value) ? value : [value]).map((item) => down(schema.items, item));
    case "Tuple":
      return Array.isArray(value) ? value.map((item, index) => (index < schema.items.length ? down(schema.items[index], item) : item)) : value;
    case "Object":
      if (!isObject(value)) return value;
      for (const [name, inner] of Object.entries(schema.properties)) if (name in value && value[name] !== undefined) value[name] = down(inner, value[name]);
      return value;
    case "Record":
      if (!isObject(value)) return value;
      for (const [pattern, inner] of Object.entries(schema.patternProperties)) {
        for (const name of Object.keys(value)) if (expression(pattern).test(name)) value[name] = down(inner, value[name]);
      }
      return value;
    case "Union":
      for (const branch of schema.anyOf) {
        const converted = down(branch, copied(value));
        if (isValid(branch, converted, context)) return converted;
      }
      return value;
    case "Intersect":
      return schema.allOf.reduce((result, part) => down(part, result), value);
    case "Ref": case "This": case "Cyclic": {
      const target = resolveReference(root, schema.$ref, context);
      return target === undefined || target === schema ? value : down(target, value);
    }
    default:
      return value;
  }
}

const copied = (value) => (value !== null && typeof value === "object" ? JSON.parse(JSON.stringify(value)) : value);

const PLAIN = {
  string: (value) => (typeof value === "number" || typeof value === "boolean" ? String(value) : value === null ? "" : value),
  number: (value) => (value === null ? 0 : typeof value === "boolean" ? Number(value) : typeof value === "string" && isNumeric(value) ? Number(value) : value),
  integer(value) { const number = PLAIN.number(value); return Number.isInteger(number) ? number : value; },
  boolean: (value) => (value === "true" || value === 1 ? true : value === "false" || value === 0 || value === null ? false : value),
  null: (value) => (value === "" || value === 0 || value === false ? null : value),
};

/** Converts a value by the rules for plain JSON Schema. May change objects and arrays in place. */
export function coerce(schema, value, root = schema, depth = 0) {
  if (!isObject(schema) || depth > 64) return value;
  const down = (inner, member) => coerce(inner, member, root, depth + 1);
  let result = value;
  if (typeof schema.$ref === "string") result = down(resolveReference(root, schema.$ref), result);
  for (const part of schema.allOf ?? []) result = down(part, result);
  for (const branches of [schema.anyOf, schema.oneOf]) {
    if (!Array.isArray(branches)) continue;
    for (const branch of branches) {
      const attempt = down(branch, copied(result));
      if (isValid(branch, attempt)) { result = attempt; break; }
    }
  }
  const types = Array.isArray(schema.type) ? schema.type : [schema.type];
  if (!types.some((type) => type !== undefined && isValid({ type }, result))) {
    for (const type of types) {
      const attempt = PLAIN[type]?.(result) ?? (type === "null" && PLAIN.null(result) === null ? null : result);
      if (isValid({ type }, attempt)) { result = attempt; break; }
    }
  }
  if (Array.isArray(result)) {
    return result.map((item, index) => down(Array.isArray(schema.items) ? schema.items[index] : schema.items, item));
  }
  if (isObject(result)) {
    for (const [name, inner] of Object.entries(schema.properties ?? {})) if (name in result) result[name] = down(inner, result[name]);
    if (isObject(schema.additionalProperties)) {
      for (const name of Object.keys(result)) if (!(name in (schema.properties ?? {}))) result[name] = down(schema.additionalProperties, result[name]);
    }
  }
  return result;
}
