// A JSON Schema checker that reports all findings, keyword by keyword.
//
// The order and the words of the findings are those of TypeBox: the model receives exactly these lines about the
// arguments of a tool.

import { FormatRegistry, TypeRegistry } from "pinion:packages/schema_registry";

/** The most findings that are collected. */
export const MAX_ERRORS = 8;

const MAX_DEPTH = 256;

export const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
const own = (object, name) => Object.prototype.hasOwnProperty.call(object, name);
const count = (text) => { let length = 0; for (const _ of text) length += 1; return length; };
const quoted = (names) => names.join(", ");

/** Compares the JSON of two values. */
export function same(left, right) {
  if (Object.is(left, right) || left === right) return true;
  if (left === null || right === null || typeof left !== "object" || typeof right !== "object") return false;
  if (Array.isArray(left) !== Array.isArray(right)) return false;
  const names = Object.keys(left);
  return names.length === Object.keys(right).length && names.every((name) => own(right, name) && same(left[name], right[name]));
}

const TYPES = {
  string: (value) => typeof value === "string",
  number: (value) => Number.isFinite(value),
  integer: (value) => Number.isInteger(value),
  boolean: (value) => typeof value === "boolean",
  null: (value) => value === null,
  array: Array.isArray,
  object: isObject,
  undefined: (value) => value === undefined,
  void: (value) => value === undefined,
  symbol: (value) => typeof value === "symbol",
  bigint: (value) => typeof value === "bigint",
  function: (value) => typeof value === "function",
  constructor: (value) => typeof value === "function",
  Date: (value) => value instanceof Date,
  Uint8Array: (value) => value instanceof Uint8Array,
  RegExp: (value) => typeof value === "string",
  Promise: (value) => typeof value?.then === "function",
};

const regularExpressions = new Map();
/** Converts a pattern to a regular expression; an invalid one matches everything. */
export function expression(pattern) {
  let found = regularExpressions.get(pattern);
  if (found === undefined) {
    try { found = new RegExp(pattern, "u"); } catch {
      try { found = new RegExp(pattern); } catch { found = /(?:)/; }
    }
    regularExpressions.set(pattern, found);
  }
  return found;
}

function isMultiple(value, factor) {
  if (typeof value === "bigint" || typeof factor === "bigint") return BigInt(value) % BigInt(factor) === 0n;
  const rest = Math.abs(value % factor);
  return Math.min(rest, Math.abs(Math.abs(factor) - rest)) < 1e-10;
}

class Checker {
  constructor(root, context, limit) {
    this.root = root;
    this.context = context;
    this.limit = limit;
    this.errors = [];
    this.depth = 0;
  }

  /** Records a finding; returns false, so that the result can be returned. */
  report(keyword, schemaPath, instancePath, params, message) {
    if (this.errors.length < this.limit) this.errors.push({ keyword, schemaPath, instancePath, params, message });
    return false;
  }

  /** Checks without recording findings. */
  passes(schema, value) {
    const quiet = new Checker(this.root, this.context, 1);
    quiet.depth = this.depth;
    return quiet.check(schema, value, "#", "");
  }

  resolve(reference) {
    if (own(this.context, reference)) return this.context[reference];
    if (reference === "#") return this.root;
    if (reference.startsWith("#/")) {
      const steps = reference.slice(2).split("/").map((step) => decodeURIComponent(step).replaceAll("~1", "/").replaceAll("~0", "~"));
      return steps.reduce((schema, step) => schema?.[step], this.root);
    }
    return this.root?.$defs?.[reference] ?? this.root?.definitions?.[reference] ?? named(this.root, reference);
  }

  check(schema, value, at, path) {
    if (schema === true || schema === undefined) return true;
    if (schema === false) return this.report("boolean", at, path, {}, "schema is false");
    if (!isObject(schema) || this.depth > MAX_DEPTH) return true;
    this.depth += 1;
    const before = this.errors.length;
    let good = this.checkType(schema, value, at, path);
    if (isObject(value)) good = this.checkObject(schema, value, at, path) && good;
    else if (Array.isArray(value)) good = this.checkArray(schema, value, at, path) && good;
    else if (typeof value === "string") good = this.checkString(schema, value, at, path) && good;
    else if (typeof value === "number" || typeof value === "bigint") good = this.checkNumber(schema, value, at, path) && good;
    good = this.checkChoices(schema, value, at, path) && good;
    good = this.checkUnevaluated(schema, value, at, path) && good;
    if (good && this.errors.length === before) good = this.checkCustom(schema, value, at, path);
    this.depth -= 1;
    return good;
  }

  checkType({ type }, value, at, path) {
    const fits = (name) => !own(TYPES, name) || TYPES[name](value);
    if (typeof type === "string" && !fits(type)) return this.report("type", at, path, { type }, `must be ${type}`);
    if (Array.isArray(type) && !type.some(fits)) {
      return this.report("type", at, path, { type }, `must be either ${type.join(" or ")}`);
    }
    return true;
  }

  checkObject(schema, value, at, path) {
    let good = true;
    const fail = (keyword, params, message) => { good = this.report(keyword, at, path, params, message); };
    const { properties = {}, patternProperties = {}, required } = schema;
    const has = (name) => own(value, name) && value[name] !== undefined;
    if (Array.isArray(required)) {
      const missing = required.filter((name) => !has(name));
      if (missing.length > 0) fail("required", { requiredProperties: missing }, `must have required properties ${quoted(missing)}`);
    }
    const child = (name) => `${path}/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`;
    const patterns = Object.keys(patternProperties).map((pattern) => [pattern, expression(pattern)]);
    if (own(schema, "additionalProperties")) {
      const others = Object.keys(value).filter((name) => !own(properties, name) && !patterns.some(([, pattern]) => pattern.test(name)));
      const refused = others.filter((name) => !this.check(schema.additionalProperties, value[name], `${at}/additionalProperties`, child(name)));
      if (refused.length > 0) fail("additionalProperties", { additionalProperties: refused }, "must not have additional properties");
    }
    for (const [name, needed] of Object.entries(schema.dependencies ?? {})) {
      if (!has(name)) continue;
      if (Array.isArray(needed)) {
        if (needed.some((other) => !has(other))) fail("dependencies", { property: name, dependencies: needed }, `must have properties ${quoted(needed)} when property ${name} is present`);
      } else if (!this.check(needed, value, `${at}/dependencies/${name}`, path)) good = false;
    }
    for (const [name, needed] of Object.entries(schema.dependentRequired ?? {})) {
      if (has(name) && needed.some((other) => !has(other))) fail("dependentRequired", { property: name, dependencies: needed }, `must have properties ${quoted(needed)} when property ${name} is present`);
    }
    for (const [name, dependent] of Object.entries(schema.dependentSchemas ?? {})) {
      if (has(name) && !this.check(dependent, value, `${at}/dependentSchemas/${name}`, path)) good = false;
    }
    for (const [source, pattern] of patterns) {
      for (const name of Object.keys(value)) {
        if (pattern.test(name) && !this.check(patternProperties[source], value[name], `${at}/patternProperties/${source}`, child(name))) good = false;
      }
    }
    for (const name of Object.keys(properties)) {
      if (has(name) && !this.check(properties[name], value[name], `${at}/properties/${name}`, child(name))) good = false;
    }
    if (own(schema, "propertyNames")) {
      const wrong = Object.keys(value).filter((name) => !this.check(schema.propertyNames, name, `${at}/propertyNames`, child(name)));
      if (wrong.length > 0) fail("propertyNames", { propertyNames: wrong }, `property names ${quoted(wrong)} are invalid`);
    }
    const size = Object.keys(value).length;
    if (size < schema.minProperties) fail("minProperties", { limit: schema.minProperties }, `must not have fewer than ${schema.minProperties} properties`);
    if (size > schema.maxProperties) fail("maxProperties", { limit: schema.maxProperties }, `must not have more than ${schema.maxProperties} properties`);
    return good;
  }

  checkArray(schema, value, at, path) {
    let good = true;
    const fail = (keyword, params, message) => { good = this.report(keyword, at, path, params, message); };
    const { items, prefixItems = [] } = schema;
    if (Array.isArray(items) && own(schema, "additionalItems")) {
      value.slice(items.length).forEach((item, index) => {
        if (!this.check(schema.additionalItems, item, `${at}/additionalItems`, `${path}/${items.length + index}`)) good = false;
      });
    }
    const contained = own(schema, "contains") ? value.filter((item) => this.passes(schema.contains, item)).length : undefined;
    const contains = (least) => fail("contains", { minContains: least }, `must contain at least ${least} valid item${least === 1 ? "" : "s"}`);
    if (contained === 0 && schema.minContains !== 0) contains(1);
    value.forEach((item, index) => {
      if (Array.isArray(items)) {
        if (index < items.length && !this.check(items[index], item, `${at}/items/${index}`, `${path}/${index}`)) good = false;
      } else if (items !== undefined && index >= prefixItems.length) {
        if (!this.check(items, item, `${at}/items`, `${path}/${index}`)) good = false;
      }
    });
    if (contained > schema.maxContains) fail("contains", { minContains: 1, maxContains: schema.maxContains }, `must contain no more than ${schema.maxContains} valid items`);
    if (contained < schema.minContains) contains(schema.minContains);
    if (value.length < schema.minItems) fail("minItems", { limit: schema.minItems }, `must not have fewer than ${schema.minItems} items`);
    if (value.length > schema.maxItems) fail("maxItems", { limit: schema.maxItems }, `must not have more than ${schema.maxItems} items`);
    prefixItems.forEach((prefix, index) => {
      if (index < value.length && !this.check(prefix, value[index], `${at}/prefixItems/${index}`, `${path}/${index}`)) good = false;
    });
    if (schema.uniqueItems === true) {
      const duplicateItems = [...value.keys()].filter((index) => value.slice(0, index).some((item) => same(item, value[index])));
      if (duplicateItems.length > 0) fail("uniqueItems", { duplicateItems }, "must not have duplicate items");
    }
    return good;
  }

  checkString(schema, value, at, path) {
    let good = true;
    const fail = (keyword, params, message) => { good = this.report(keyword, at, path, params, message); };
    const { minLength, maxLength, format, pattern } = schema;
    if (minLength !== undefined && count(value) < minLength) fail("minLength", { limit: minLength }, `must not have fewer than ${minLength} characters`);
    if (maxLength !== undefined && count(value) > maxLength) fail("maxLength", { limit: maxLength }, `must not have more than ${maxLength} characters`);
    if (typeof format === "string" && !FormatRegistry.Test(format, value)) fail("format", { format }, `must match format "${format}"`);
    const source = pattern instanceof RegExp ? pattern.source : pattern;
    if (typeof source === "string" && !expression(source).test(value)) fail("pattern", { pattern: source }, `must match pattern "${source}"`);
    if (schema.type === "RegExp" && !new RegExp(schema.source, schema.flags).test(value)) fail("pattern", { pattern: schema.source }, `must match pattern "${schema.source}"`);
    return good;
  }

  checkNumber(schema, value, at, path) {
    let good = true;
    const bound = (keyword, comparison, holds) => {
      const limit = schema[keyword];
      if (limit !== undefined && !holds(limit)) good = this.report(keyword, at, path, { comparison, limit }, `must be ${comparison} ${limit}`);
    };
    bound("exclusiveMinimum", ">", (limit) => value > limit);
    bound("exclusiveMaximum", "<", (limit) => value < limit);
    bound("minimum", ">=", (limit) => value >= limit);
    bound("maximum", "<=", (limit) => value <= limit);
    const { multipleOf } = schema;
    if (multipleOf !== undefined && !isMultiple(value, multipleOf)) good = this.report("multipleOf", at, path, { multipleOf }, `must be multiple of ${multipleOf}`);
    return good;
  }

  checkChoices(schema, value, at, path) {
    let good = true;
    const fail = (keyword, params, message) => { good = this.report(keyword, at, path, params, message); };
    if (typeof schema.$ref === "string") {
      const target = this.resolve(schema.$ref);
      if (target !== undefined && target !== schema && !this.check(target, value, at, path)) good = false;
    }
    if (own(schema, "const") && !same(schema.const, value)) fail("const", { allowedValue: schema.const }, "must be equal to constant");
    if (Array.isArray(schema.enum) && !schema.enum.some((allowed) => same(allowed, value))) fail("enum", { allowedValues: schema.enum }, "must be equal to one of the allowed values");
    if (own(schema, "if")) {
      const branch = this.passes(schema.if, value) ? "then" : "else";
      if (own(schema, branch) && !this.passes(schema[branch], value)) fail("if", { failingKeyword: branch }, `must match "${branch}" schema`);
    }
    if (own(schema, "not") && this.passes(schema.not, value)) fail("not", {}, "must not be valid");
    (schema.allOf ?? []).forEach((part, index) => {
      if (!this.check(part, value, `${at}/allOf/${index}`, path)) good = false;
    });
    if (Array.isArray(schema.anyOf) && !schema.anyOf.some((branch) => this.passes(branch, value))) {
      schema.anyOf.forEach((branch, index) => this.check(branch, value, `${at}/anyOf/${index}`, path));
      fail("anyOf", {}, "must match a schema in anyOf");
    }
    if (Array.isArray(schema.oneOf)) {
      const passingSchemas = [...schema.oneOf.keys()].filter((index) => this.passes(schema.oneOf[index], value));
      if (passingSchemas.length !== 1) {
        if (passingSchemas.length === 0) schema.oneOf.forEach((branch, index) => this.check(branch, value, `${at}/oneOf/${index}`, path));
        fail("oneOf", { passingSchemas }, "must match exactly one schema in oneOf");
      }
    }
    return good;
  }

  checkUnevaluated(schema, value, at, path) {
    let good = true;
    if (own(schema, "unevaluatedProperties") && isObject(value)) {
      const known = this.evaluated(schema, value, new Set());
      const refused = Object.keys(value).filter((name) => !known.has(name) && !this.passes(schema.unevaluatedProperties, value[name]));
      if (refused.length > 0) good = this.report("unevaluatedProperties", at, path, { unevaluatedProperties: refused }, "must not have unevaluated properties");
    }
    return good;
  }

  /** Returns the properties that some part of the schema has evaluated. */
  evaluated(schema, value, known) {
    if (!isObject(schema)) return known;
    const patterns = Object.keys(schema.patternProperties ?? {}).map(expression);
    for (const name of Object.keys(value)) {
      if (own(schema.properties ?? {}, name) || patterns.some((pattern) => pattern.test(name)) || own(schema, "additionalProperties")) known.add(name);
    }
    const parts = [...(schema.allOf ?? []), ...(schema.anyOf ?? []), ...(schema.oneOf ?? []), schema.if, schema.then, schema.else];
    if (typeof schema.$ref === "string") parts.push(this.resolve(schema.$ref));
    for (const part of parts) {
      if (part !== undefined && part !== schema && this.passes(part, value)) this.evaluated(part, value, known);
    }
    return known;
  }

  checkCustom(schema, value, at, path) {
    let good = true;
    (schema["~refine"] ?? []).forEach(({ check, error }, index) => {
      if (check(value)) return;
      const message = String(error?.(value) ?? "must match refinement");
      good = this.report("~refine", at, path, { index, message }, message);
    });
    const custom = TypeRegistry.Get(schema["~kind"] ?? schema[Symbol.for("TypeBox.Kind")]);
    if (custom !== undefined && !custom(schema, value)) good = this.report("~kind", at, path, {}, "must be of the registered kind");
    return good;
  }
}

/** Returns the schema inside `root` with the `$id`. */
function named(root, id, depth = 0) {
  if (root === null || typeof root !== "object" || depth > 32) return undefined;
  if (root.$id === id || root.$anchor === id.replace(/^#/, "")) return root;
  for (const member of Object.values(root)) {
    const found = named(member, id, depth + 1);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Returns the findings about `value`, up to a limit. */
export function errorsOf(schema, value, context = {}, limit = MAX_ERRORS) {
  const checker = new Checker(schema, context, limit);
  checker.check(schema, value, "#", "");
  return checker.errors;
}

/** Reports whether `value` matches `schema`. */
export const isValid = (schema, value, context = {}) => new Checker(schema, context, 1).check(schema, value, "#", "");

/** Returns the schema that a reference inside `root` points to. */
export const resolveReference = (root, reference, context = {}) => new Checker(root, context, 1).resolve(reference);
