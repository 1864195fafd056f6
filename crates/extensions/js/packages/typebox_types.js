// The basic builders of `Type`: one per JSON Schema shape, with members in serialisation order.

import { copy, hide, IsKind, IsLiteral, IsOptional, IsUnion, kindOf, make, mark, unmark } from "pinion:packages/typebox_schema";

export const StringPattern = ".*";
export const IntegerPattern = "-?(?:0|[1-9][0-9]*)";
export const NumberPattern = `${IntegerPattern}(?:\\.[0-9]+)?`;
export const BigIntPattern = `${IntegerPattern}n`;
export const NeverPattern = "(?!)";
export const StringKey = `^${StringPattern}$`;
export const IntegerKey = `^${IntegerPattern}$`;
export const NumberKey = `^${NumberPattern}$`;

export const Any = (options) => make("Any", {}, options);
export const Unknown = (options) => make("Unknown", {}, options);
export const Never = (options) => make("Never", { not: {} }, options);
const typed = (kind, type) => (options) => make(kind, { type }, options);
export const String_ = typed("String", "string");
export const Number_ = typed("Number", "number");
export const Integer = typed("Integer", "integer");
export const Boolean_ = typed("Boolean", "boolean");
export const Null = typed("Null", "null");
export const Undefined = typed("Undefined", "undefined");
export const Void = typed("Void", "void");
export const Symbol_ = typed("Symbol", "symbol");
export const BigInt_ = typed("BigInt", "bigint");
export const Date_ = typed("Date", "Date");
export const Uint8Array_ = typed("Uint8Array", "Uint8Array");

/** Returns the names of the required properties; an empty list if all are optional. */
export function RequiredArray(properties) {
  return Object.keys(properties).filter((name) => !IsOptional(properties[name]));
}

export function Object_(properties, options) {
  const required = RequiredArray(properties);
  const members = required.length > 0 ? { type: "object", required, properties } : { type: "object", properties };
  return make("Object", members, options);
}

export const Array_ = (items, options) => make("Array", { type: "array", items }, options);

export function Tuple(types, options) {

  return make("Tuple", { type: "array", additionalItems: false, items: types, minItems: types.length }, options);
}

export class InvalidLiteralValue extends Error {
  constructor(value) {
    super("a literal must be a string, a number, a boolean or a bigint");
    this.value = value;
  }
}

export const LiteralTypeName = (value) => typeof value;

export function Literal(value, options) {
  if (!["bigint", "boolean", "number", "string"].includes(typeof value)) throw new InvalidLiteralValue(value);
  return make("Literal", { type: typeof value, const: value }, options);
}

/** Returns the values of a TypeScript enum; a numeric one also maps its numbers back to names. */
export function TypeScriptEnumToEnumValues(members) {
  const isBackReference = (name) => !Number.isNaN(Number(name));
  return Object.keys(members).filter((name) => !isBackReference(name)).map((name) => members[name]);
}

export function Enum(values, options) {
  const list = Array.isArray(values) ? values : TypeScriptEnumToEnumValues(values);
  return make("Enum", { enum: [...new Set(list)] }, options);
}

export const Union = (anyOf, options) => make("Union", { anyOf }, options);
export const Intersect = (allOf, options) => make("Intersect", { allOf }, options);

/** Returns `never` without types, a single type, or the union. */
export function oneOrUnion(types, options) {
  if (types.length === 0) return Never(options);
  return types.length === 1 ? copy(types[0], options) : Union(types, options);
}

/** Returns the literal values of a key type, or undefined if their number is not limited. */
export function finiteKeys(key) {
  if (Array.isArray(key)) return key.map(String);
  if (typeof key === "string" || typeof key === "number") return [String(key)];
  if (IsLiteral(key)) return [String(key.const)];
  if (IsKind(key, "Enum")) return key.enum.map(String);
  if (IsUnion(key)) {
    const parts = key.anyOf.map(finiteKeys);
    return parts.some((part) => part === undefined) ? undefined : parts.flat();
  }
  if (IsKind(key, "TemplateLiteral")) return key["~values"];
  if (IsKind(key, "Boolean")) return ["true", "false"];
  return IsKind(key, "Never") ? [] : undefined;
}

function keyPattern(key) {
  switch (kindOf(key)) {
    case "Integer": return IntegerKey;
    case "Number": return NumberKey;
    case "TemplateLiteral": return key.pattern;
    case "Never": return `^${NeverPattern}$`;
    default: return typeof key?.pattern === "string" ? key.pattern : StringKey;
  }
}

export function Record(key, value, options) {
  const names = finiteKeys(key);
  if (names !== undefined) return Object_(Object.fromEntries(names.map((name) => [name, value])), options);
  return make("Record", { type: "object", patternProperties: { [keyPattern(key)]: value } }, options);
}
export const RecordFromPattern = (pattern, value) =>
  make("Record", { type: "object", patternProperties: { [pattern]: value } });
export const RecordPattern = (record) => Object.keys(record.patternProperties)[0];
export const RecordValue = (record) => record.patternProperties[RecordPattern(record)];
export function RecordPatternToType(pattern) {
  if (pattern === StringKey) return String_();
  if (pattern === IntegerKey) return Integer();
  return pattern === NumberKey ? Number_() : make("TemplateLiteral", { type: "string", pattern });
}
export const RecordKey = (record) => RecordPatternToType(RecordPattern(record));

export const Optional = (schema) => mark(schema, "~optional");
export const Readonly = (schema) => mark(schema, "~readonly");
export const Immutable = (schema) => mark(schema, "~immutable");
export const AddOptional = Optional;
export const AddReadonly = Readonly;
export const AddImmutable = Immutable;
export const RemoveOptional = (schema) => unmark(schema, "~optional");
export const RemoveReadonly = (schema) => unmark(schema, "~readonly");
export const RemoveImmutable = (schema) => unmark(schema, "~immutable");

export const Ref = (target, options) =>
  make("Ref", { $ref: typeof target === "string" ? target : target.$id }, options);
export const This = (options) => make("This", { $ref: "#" }, options);
export const Identifier = (name) => make("Identifier", { name });
export const Parameter = (name, extends_ = Unknown(), equals = extends_) =>
  make("Parameter", { name, extends: extends_, equals });
export const Infer = (name, extends_ = Unknown()) => make("Infer", { type: "infer", name, extends: extends_ });
export const Rest = (items) => make("Rest", { type: "rest", items });
export const Dependent = (condition, then, otherwise, options) =>
  make("Dependent", { if: condition, then, else: otherwise }, options);

export const Function_ = (parameters, returnType, options) =>
  make("Function", { type: "function", parameters, returnType }, options);
export const Constructor = (parameters, instanceType, options) =>
  make("Constructor", { type: "constructor", parameters, instanceType }, options);
export const Parameters = (function_, options) => Tuple(function_.parameters, options);
export const ConstructorParameters = Parameters;
export const ReturnType = (function_, options) => copy(function_.returnType, options);
export const InstanceType = (constructor, options) => copy(constructor.instanceType, options);
export const Promise_ = (item, options) => make("Promise", { type: "Promise", item }, options);
export const RegExp_ = (pattern, options) => {
  const { source, flags } = typeof pattern === "string" ? new RegExp(pattern) : pattern;
  return make("RegExp", { type: "RegExp", source, flags }, options);
};

/** Creates a type from any JSON Schema, unchanged. */
export const Unsafe = (schema = {}) => hide(copy(schema), "~unsafe", null);
export const With = (schema, options) => copy(schema, options);
export const Not = (type, options) => make("Not", { not: type }, options);

/** Creates the recursive type of older releases: `Recursive(This => …)`. */
export function Recursive(callback, options = {}) {
  const $id = options.$id ?? `T${recursions++}`;
  const schema = callback(make("This", { $ref: $id }));
  return copy(schema, { ...options, $id });
}
let recursions = 0;

/** Creates the schema of one value, as `as const` would type it. */
export function Const(value, options) {
  if (Array.isArray(value)) return Tuple(value.map((item) => Const(item)), options);
  if (value === null) return Null(options);
  if (value === undefined) return Undefined(options);
  if (typeof value !== "object") return Literal(value, options);
  const properties = Object.entries(value).map(([name, member]) => [name, Readonly(Const(member))]);
  return Object_(Object.fromEntries(properties), options);
}
