// Types derived from other types: parts of objects, members of unions, letter case, templates.

import { copy, hide, IsCodec, IsKind, IsLiteral, IsOptional, IsUnion, kindOf, make, unmark } from "pinion:packages/typebox_schema";
import {
  BigIntPattern, finiteKeys, Immutable, IntegerPattern, Intersect, Literal, Never, NumberPattern, Object_, oneOrUnion,
  Optional, Readonly, StringPattern, String_, Number_, Tuple, Union,
} from "pinion:packages/typebox_types";

/** Returns the properties of an object type, of an intersection of them, or those common to a union. */
export function propertiesOf(type) {
  switch (kindOf(type)) {
    case "Cyclic":
      return propertiesOf(type.$defs[type.$ref]);
    case "Intersect":
      return merged(type.allOf.map(propertiesOf));
    case "Union": {
      const [first = {}, ...rest] = type.anyOf.map(propertiesOf);
      const shared = Object.keys(first).filter((name) => rest.every((other) => name in other));
      return Object.fromEntries(shared.map((name) =>
        [name, oneOrUnion([first[name], ...rest.map((other) => other[name])])]));
    }
    case "Tuple":
      return Object.fromEntries(type.items.map((item, index) => [String(index), item]));
    default:
      return type?.properties ?? {};
  }
}

/** Properties that occur more than once must satisfy all of their types. */
function merged(all) {
  const result = {};
  for (const properties of all) {
    for (const [name, type] of Object.entries(properties)) {
      if (!(name in result)) { result[name] = type; continue; }
      const both = Intersect([unmark(result[name], "~optional"), unmark(type, "~optional")]);
      result[name] = IsOptional(result[name]) && IsOptional(type) ? Optional(both) : both;
    }
  }
  return result;
}

export const PropertyKeys = (type) => Object.keys(propertiesOf(type));
export const PropertyValues = (type) => Object.values(propertiesOf(type));

/** Applies a change to every property of an object type, or of each member of a union. */
function eachProperty(type, options, change) {
  if (IsUnion(type)) return Union(type.anyOf.map((member) => eachProperty(member, undefined, change)), options);
  if (IsKind(type, "Cyclic")) return eachProperty(type.$defs[type.$ref], options, change);
  const properties = Object.entries(propertiesOf(type)).map(([name, member]) => [name, change(member)]);
  return Object_(Object.fromEntries(properties), options);
}

export const Partial = (type, options) => eachProperty(type, options, Optional);
export const Required = (type, options) => eachProperty(type, options, (member) => unmark(member, "~optional"));
export const ReadonlyObject = (type, options) => eachProperty(type, options, Readonly);
export function ReadonlyType(type, options) {
  if (IsKind(type, "Array") || IsKind(type, "Tuple")) return Immutable(copy(type, options));
  return IsKind(type, "Object") ? ReadonlyObject(type, options) : Readonly(copy(type, options));
}

function selected(type, keys, options, wanted) {
  if (IsUnion(type)) return Union(type.anyOf.map((member) => selected(member, keys, undefined, wanted)), options);
  const names = new Set(finiteKeys(keys) ?? []);
  const properties = Object.entries(propertiesOf(type)).filter(([name]) => names.has(name) === wanted);
  return Object_(Object.fromEntries(properties), options);
}
export const Pick = (type, keys, options) => selected(type, keys, options, true);
export const Omit = (type, keys, options) => selected(type, keys, options, false);

/** Creates one object type with the properties of all; a later one overrides an earlier one. */
export function Composite(...types) {
  const options = Array.isArray(types[0]) ? types[1] : undefined;
  const list = Array.isArray(types[0]) ? types[0] : types.filter((type) => type !== undefined);
  return Object_(Object.assign({}, ...list.map(propertiesOf)), options);
}

export function Interface(heritage, properties, options) {
  return Object_(Object.assign({}, ...heritage.map(propertiesOf), properties), options);
}

export function Evaluate(type, options) {
  if (IsKind(type, "Intersect") && type.allOf.every((part) => Object.keys(propertiesOf(part)).length > 0)) {
    return Object_(propertiesOf(type), options);
  }
  return copy(type, options);
}

export function KeyOf(type, options) {
  if (IsKind(type, "Record")) {
    const [pattern] = Object.keys(type.patternProperties);
    return pattern.includes("[0-9]") ? Number_(options) : String_(options);
  }
  if (IsKind(type, "Array")) return Number_(options);
  return oneOrUnion(Object.keys(propertiesOf(type)).map((name) => Literal(name)), options);
}

export function Index(type, keys, options) {
  if (IsKind(type, "Array")) return copy(type.items, options);
  const names = finiteKeys(keys);
  if (IsKind(type, "Tuple") && names === undefined) return oneOrUnion(type.items, options);
  if (IsKind(type, "Record")) return copy(Object.values(type.patternProperties)[0], options);
  const properties = propertiesOf(type);
  const types = (names ?? []).filter((name) => name in properties).map((name) => unmark(properties[name], "~optional"));
  return oneOrUnion(types, options);
}

const members = (type) => (IsUnion(type) ? type.anyOf : [type]);

/** Reports whether every value of `left` is one of `right`, by comparing their shapes. */
export function isAssignable(left, right) {
  if (["Any", "Unknown"].includes(kindOf(right)) || IsKind(left, "Never") || IsKind(left, "Any")) return true;
  if (IsUnion(left)) return left.anyOf.every((member) => isAssignable(member, right));
  if (IsUnion(right)) return right.anyOf.some((member) => isAssignable(left, member));
  if (IsKind(right, "Enum")) return right.enum.includes(left?.const);
  if (IsLiteral(right)) return IsLiteral(left) && left.const === right.const;
  if (IsKind(right, "Object")) {
    const have = propertiesOf(left);
    return IsKind(left, "Object") && Object.entries(right.properties).every(([name, type]) =>
      name in have ? isAssignable(have[name], type) : IsOptional(type));
  }
  if (IsKind(right, "Array")) return IsKind(left, "Array") && isAssignable(left.items, right.items);
  const wide = { Literal: left?.type, TemplateLiteral: "string", Integer: "number" }[kindOf(left)] ?? left?.type;
  return wide === right?.type || left?.type === right?.type;
}

export const Exclude = (left, right, options) =>
  oneOrUnion(members(left).filter((member) => !isAssignable(member, right)), options);
export const Extract = (left, right, options) =>
  oneOrUnion(members(left).filter((member) => isAssignable(member, right)), options);
export const NonNullable = (type, options) =>
  oneOrUnion(members(type).filter((member) => !["Null", "Undefined"].includes(kindOf(member))), options);
export const Conditional = (left, right, yes, no, options) => copy(isAssignable(left, right) ? yes : no, options);

const lettered = (change) => function lettering(type, options) {
  if (IsUnion(type)) return Union(type.anyOf.map((member) => lettering(member)), options);
  if (IsLiteral(type) && typeof type.const === "string") return Literal(change(type.const), options);
  return copy(type, options);
};
export const Uppercase = lettered((text) => text.toUpperCase());
export const Lowercase = lettered((text) => text.toLowerCase());
export const Capitalize = lettered((text) => text.slice(0, 1).toUpperCase() + text.slice(1));
export const Uncapitalize = lettered((text) => text.slice(0, 1).toLowerCase() + text.slice(1));

const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

function patternOf(type) {
  if (IsLiteral(type)) return escaped(String(type.const));
  if (IsUnion(type)) return `(${type.anyOf.map(patternOf).join("|")})`;
  switch (kindOf(type)) {
    case "TemplateLiteral": return type.pattern.slice(1, -1);
    case "Boolean": return "(false|true)";
    case "Number": return NumberPattern;
    case "Integer": return IntegerPattern;
    case "BigInt": return BigIntPattern;
    default: return StringPattern;
  }
}

const PLACEHOLDERS = { string: StringPattern, number: NumberPattern, integer: IntegerPattern, boolean: "(false|true)", bigint: BigIntPattern };

/** Creates a template type from a text such as `"a${string}"` or from the list of its parts. */
export function TemplateLiteral(parts, options) {
  let pattern = "";
  let values = [""];
  if (typeof parts === "string") {
    const pieces = parts.split(/\$\{([^}]*)\}/);
    pieces.forEach((piece, at) => {
      pattern += at % 2 === 0 ? escaped(piece) : placeholder(piece.trim());
    });
    values = pieces.length === 1 ? [parts] : undefined;
  } else {
    for (const part of parts) {
      pattern += patternOf(part);
      const ends = finiteKeys(part);
      values = ends === undefined ? undefined : values?.flatMap((start) => ends.map((end) => start + end));
    }
  }
  return hide(make("TemplateLiteral", { type: "string", pattern: `^${pattern}$` }, options), "~values", values);
}

function placeholder(text) {
  if (text in PLACEHOLDERS) return PLACEHOLDERS[text];
  const choices = text.split("|").map((choice) => choice.trim());
  if (choices.every((choice) => /^(['"]).*\1$/.test(choice))) return `(${choices.map((choice) => escaped(choice.slice(1, -1))).join("|")})`;
  throw new Error(`TemplateLiteral of typebox cannot read "\${${text}}" in this host`);
}
export const IsTemplateLiteralFinite = (type) => type["~values"] !== undefined;

/** Creates a type whose values can be converted to other ones and back. */
export class DecodeBuilder {
  constructor(type) { this.type = type; }
  Decode(decode) { return new EncodeBuilder(this.type, decode); }
}
export class EncodeBuilder {
  constructor(type, decode) { this.type = type; this.decode = decode; }
  Encode(encode) { return withCodec(this.type, this.decode, encode); }
}
const withCodec = (type, decode, encode) => hide(copy(type), "~codec", { decode, encode });
export const Codec = (type) => new DecodeBuilder(type);
export const Transform = Codec;
const oneWay = (name) => () => { throw new Error(`${name} is not defined for this codec`); };
export const Decode = (type, decode) => withCodec(type, decode, IsCodec(type) ? type["~codec"].encode : oneWay("Encode"));
export const Encode = (type, encode) => withCodec(type, IsCodec(type) ? type["~codec"].decode : oneWay("Decode"), encode);

/** Adds a condition on the values of a type. */
export function Refine(type, check, error) {
  const refinement = error === undefined ? { check } : { check, error: typeof error === "function" ? error : () => error };
  return hide(copy(type), "~refine", [...(type["~refine"] ?? []), refinement]);
}
export const RefineAdd = (type, refinement) => hide(copy(type), "~refine", [...(type["~refine"] ?? []), refinement]);

export function Cyclic(definitions, $ref, options) {
  const $defs = Object.fromEntries(Object.entries(definitions).map(([name, type]) => [name, copy(type, { $id: name })]));
  return make("Cyclic", { $defs, $ref }, options);
}

/** Replaces references by name with the named types. */
export function Instantiate(context, type) {
  if (type === null || typeof type !== "object") return type;
  if (Array.isArray(type)) return type.map((item) => Instantiate(context, item));
  if (IsKind(type, "Ref") && type.$ref in context) return context[type.$ref];
  const result = copy(type);
  for (const name of Object.keys(type)) {
    const value = type[name];
    if (name === "properties" || name === "patternProperties" || name === "$defs") {
      result[name] = Object.fromEntries(Object.entries(value).map(([key, member]) => [key, Instantiate(context, member)]));
    } else if (["items", "anyOf", "allOf", "oneOf", "not", "parameters", "returnType", "instanceType", "if", "then", "else"].includes(name)) {
      result[name] = Instantiate(context, value);
    }
  }
  return result;
}

/** Creates types that refer to each other; a type that refers to itself becomes a cyclic one. */
export function Module(types) {
  const isOn = (path, type) => JSON.stringify(type ?? {}).includes(`"$ref":"${path}"`);
  const resolve = (name, path) => {
    const inner = {};
    for (const other of Object.keys(types)) {
      if (isOn(other, types[name]) && !path.includes(other)) inner[other] = resolve(other, [...path, other]);
    }
    return Instantiate(inner, types[name]);
  };
  return Object.fromEntries(Object.keys(types).map((name) => {
    const type = resolve(name, [name]);
    return [name, isOn(name, type) ? Cyclic({ [name]: type }, name) : type];
  }));
}

export const Generic = (parameters, expression) => make("Generic", { type: "generic", parameters, expression });
export function Call(generic, arguments_) {
  const context = Object.fromEntries(generic.parameters.map(({ name, equals }, at) => [name, arguments_[at] ?? equals]));
  return Instantiate(context, generic.expression);
}

export function Mapped(identifier, key, as, property, options) {
  const names = finiteKeys(key) ?? [];
  const properties = {};
  for (const name of names) {
    const context = { [identifier.name]: Literal(name) };
    const [renamed] = finiteKeys(Instantiate(context, as)) ?? [name];
    properties[renamed] = Instantiate(context, property);
  }
  return Object_(properties, options);
}

export const ExtendsResult = {
  ExtendsUnion: (inferred) => make("ExtendsUnion", { inferred }),
  ExtendsTrue: (inferred) => make("ExtendsTrue", { inferred }),
  ExtendsFalse: () => make("ExtendsFalse", {}),
  IsExtendsUnion: (value) => IsKind(value, "ExtendsUnion"),
  IsExtendsTrue: (value) => IsKind(value, "ExtendsTrue"),
  IsExtendsFalse: (value) => IsKind(value, "ExtendsFalse"),
  IsExtendsTrueLike: (value) => IsKind(value, "ExtendsTrue") || IsKind(value, "ExtendsUnion"),
  Match: (value, yes, no) => (IsKind(value, "ExtendsFalse") ? no() : yes(value.inferred)),
};
export const Extends = (context, left, right) =>
  isAssignable(Instantiate(context, left), Instantiate(context, right)) ? ExtendsResult.ExtendsTrue({}) : ExtendsResult.ExtendsFalse();
export const Flatten = (types) => types.flatMap((type) => (IsUnion(type) ? Flatten(type.anyOf) : [type]));
export const EvaluateUnion = (types) => oneOrUnion(Flatten(types));
export const EvaluateIntersect = (types) => Evaluate(Intersect(types));
export const EvaluateType = (type) => Evaluate(type);
export const CollapseToObject = (type) => Object_(propertiesOf(type));
export const KeysToIndexer = (keys) => oneOrUnion((finiteKeys(keys) ?? []).map((key) => Literal(key)));
export const Awaited = (type, options) => (IsKind(type, "Promise") ? Awaited(type.item, options) : copy(type, options));
export const RestTuple = (type) => (IsKind(type, "Tuple") ? [...type.items] : []);
export { Never, Tuple };
