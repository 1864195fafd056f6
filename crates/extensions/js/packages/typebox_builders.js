// `Type` of typebox. Builders that derive one schema from others are loaded when they are first used.

import * as schema from "pinion:packages/typebox_schema";
import * as types from "pinion:packages/typebox_types";
import { lazy } from "pinion:runtime/lazy";

/** The builders by name; those with the name of a JavaScript global end in `_` inside. */
export const Type = {};

const keep = (name, value) => Object.defineProperty(Type, name, { value, configurable: true, enumerable: true, writable: true });

function later(name, place) {
  Object.defineProperty(Type, name, {
    configurable: true,
    enumerable: true,
    get: () => keep(name, lazy(place)[name])[name],
    set: (value) => void keep(name, value),
  });
}

for (const name of [
  "Any", "Array", "Awaited", "BigInt", "Boolean", "Call", "Capitalize", "Codec", "Composite", "Conditional", "Const",
  "Constructor", "ConstructorParameters", "Cyclic", "Date", "Decode", "DecodeBuilder", "Dependent", "Encode",
  "EncodeBuilder", "Enum", "Evaluate", "Exclude", "Extends", "ExtendsResult", "Extract", "Function", "Generic",
  "Identifier", "Immutable", "Index", "Infer", "InstanceType", "Instantiate", "Integer", "Interface", "Intersect",
  "IsAny", "IsArray", "IsBigInt", "IsBoolean", "IsCall", "IsCodec", "IsConstructor", "IsCyclic", "IsDependent",
  "IsEnum", "IsEnumValue", "IsFunction", "IsGeneric", "IsIdentifier", "IsImmutable", "IsInfer", "IsInteger",
  "IsIntersect", "IsKind", "IsLiteral", "IsNever", "IsNull", "IsNumber", "IsObject", "IsOptional", "IsParameter",
  "IsReadonly", "IsRecord", "IsRef", "IsRefine", "IsRest", "IsSchema", "IsString", "IsSymbol", "IsTemplateLiteral",
  "IsThis", "IsTuple", "IsUndefined", "IsUnion", "IsUnknown", "IsUnsafe", "IsVoid", "KeyOf", "Literal", "Lowercase",
  "Mapped", "Module", "Never", "NonNullable", "Not", "Null", "Number", "Object", "Omit", "Optional", "Parameter",
  "Parameters", "Partial", "Pick", "Promise", "Readonly", "ReadonlyObject", "ReadonlyType", "Record", "RecordKey",
  "RecordPattern", "RecordValue", "Recursive", "Ref", "Refine", "RegExp", "Required", "Rest", "ReturnType", "String",
  "Symbol", "TemplateLiteral", "This", "Transform", "Tuple", "Uint8Array", "Uncapitalize", "Undefined", "Union",
  "Unknown", "Unsafe", "Uppercase", "Void", "With",
]) {
  const value = types[`${name}_`] ?? types[name] ?? schema[name];
  if (value === undefined) later(name, "packages/typebox_derive");
  else Type[name] = value;
}
later("Script", "packages/typebox");
Type.ReadonlyOptional = (type) => types.Readonly(types.Optional(type));
Type.Strict = (type) => JSON.parse(JSON.stringify(type));

export default Type;
