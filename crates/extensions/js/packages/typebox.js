// `typebox`: schemas as plain JSON Schema. Also provided under its older name, with the older functions.

import { allAbsent } from "pinion:packages/absent";
import * as types from "pinion:packages/typebox_types";

export {
  IsAny, IsArray, IsBigInt, IsBoolean, IsCall, IsCodec, IsConstructor, IsCyclic, IsDeferred, IsDependent, IsEnum,
  IsEnumValue, IsFunction, IsGeneric, IsIdentifier, IsImmutable, IsInfer, IsInteger, IsIntersect, IsKind, IsLiteral,
  IsLiteralBigInt, IsLiteralBoolean, IsLiteralNumber, IsLiteralString, IsLiteralValue, IsNever, IsNull, IsNumber,
  IsObject, IsOptional, IsParameter, IsReadonly, IsRecord, IsRef, IsRefine, IsRefinement, IsRest, IsSchema, IsString,
  IsSymbol, IsTemplateLiteral, IsThis, IsTuple, IsTypeScriptEnumLike, IsUndefined, IsUnion, IsUnknown, IsUnsafe,
  IsVoid,
} from "pinion:packages/typebox_schema";
export {
  AddImmutable, AddOptional, AddReadonly, Any, Array_ as Array, BigIntPattern, BigInt_ as BigInt,
  Boolean_ as Boolean, Constructor, ConstructorParameters, Dependent, Enum, Function_ as Function, Identifier,
  Immutable, Infer, InstanceType, Integer, IntegerKey, IntegerPattern, Intersect, InvalidLiteralValue, Literal,
  LiteralTypeName, Never, NeverPattern, Null, NumberKey, NumberPattern, Number_ as Number, Object_ as Object,
  Optional, Parameter, Parameters, Readonly, Record, RecordFromPattern, RecordKey, RecordPattern,
  RecordPatternToType, RecordValue, Ref, RemoveImmutable, RemoveOptional, RemoveReadonly, RequiredArray, Rest,
  ReturnType, StringKey, StringPattern, String_ as String, Symbol_ as Symbol, This, Tuple,
  TypeScriptEnumToEnumValues, Undefined, Union, Unknown, Unsafe, Void, With,
} from "pinion:packages/typebox_types";
export {
  Call, Capitalize, Codec, CollapseToObject, Composite, Conditional, Cyclic, Decode, DecodeBuilder, Encode,
  EncodeBuilder, Evaluate, EvaluateIntersect, EvaluateType, EvaluateUnion, Exclude, Extends, ExtendsResult, Extract,
  Flatten, Generic, Index, Instantiate, Interface, IsTemplateLiteralFinite, KeyOf, KeysToIndexer, Lowercase, Mapped,
  Module, NonNullable, Omit, Partial, Pick, PropertyKeys, PropertyValues, ReadonlyObject, ReadonlyType, Refine,
  RefineAdd, Required, TemplateLiteral, Uncapitalize, Uppercase,
} from "pinion:packages/typebox_derive";
export { Hint, Kind, OptionalKind, ReadonlyKind, TransformKind } from "pinion:packages/typebox_schema";
export { FormatRegistry, TypeRegistry } from "pinion:packages/schema_registry";
export { Const, Date_ as Date, Not, Promise_ as Promise, Recursive, RegExp_ as RegExp, Uint8Array_ as Uint8Array } from "pinion:packages/typebox_types";
export { Awaited, Transform } from "pinion:packages/typebox_derive";

export const {
  AddImmutableDeferred, AddOptionalDeferred, AddReadonlyDeferred, ArrayOptions, Broaden, CallConstruct,
  CapitalizeAction, CapitalizeDeferred, CapitalizeInstantiate, Compare, ConditionalAction, ConditionalDeferred,
  ConditionalInstantiate, ConstructorOptions, ConstructorParametersAction, ConstructorParametersDeferred,
  ConstructorParametersInstantiate, ConvertToIntegerKey, CyclicCandidates, CyclicCheck, CyclicDependencies,
  CyclicExtends, CyclicOptions, CyclicTarget, Deferred, DependentOptions, Distribute, EvaluateAction,
  EvaluateDeferred, EvaluateDependent, EvaluateEnum, EvaluateInstantiate, EvaluatePropertyIntersect,
  EvaluatePropertyUnion, EvaluateTemplateLiteral, EvaluateUnionFast, ExcludeAction, ExcludeDeferred,
  ExcludeInstantiate, ExtractAction, ExtractDeferred, ExtractInstantiate, FunctionOptions, IndexAction,
  IndexDeferred, IndexInstantiate, InstanceTypeAction, InstanceTypeDeferred, InstanceTypeInstantiate,
  InstantiateCyclic, InterfaceAction, InterfaceDeferred, InterfaceInstantiate, IntersectOptions, IsInterfaceDeferred,
  IsTemplateLiteralDeferred, IsTemplateLiteralPattern, KeyOfAction, KeyOfDeferred, KeyOfInstantiate, LowercaseAction,
  LowercaseDeferred, LowercaseInstantiate, MappedAction, MappedDeferred, MappedInstantiate, ModuleDeferred,
  ModuleInstantiate, Narrow, NonNullableAction, NonNullableDeferred, NonNullableInstantiate, ObjectOptions,
  OmitAction, OmitDeferred, OmitInstantiate, ParametersAction, ParametersDeferred, ParametersInstantiate,
  ParsePatternIntoTypes, ParseTemplateIntoTypes, PartialAction, PartialDeferred, PartialInstantiate, PickAction,
  PickDeferred, PickInstantiate, Priority, ReadonlyObjectAction, ReadonlyObjectDeferred, ReadonlyObjectInstantiate,
  RecordAction, RecordDeferred, RecordInstantiate, RecordOptions, RefInstantiate, RemoveImmutableDeferred,
  RemoveOptionalDeferred, RemoveReadonlyDeferred, RequiredAction, RequiredDeferred, RequiredInstantiate,
  ReturnTypeAction, ReturnTypeDeferred, ReturnTypeInstantiate, Script, TemplateLiteralCreate, TemplateLiteralDecode,
  TemplateLiteralDecodeUnsafe, TemplateLiteralDeferred, TemplateLiteralEncode, TemplateLiteralFromString,
  TemplateLiteralFromTypes, TupleOptions, UncapitalizeAction, UncapitalizeDeferred, UncapitalizeInstantiate,
  UnionOptions, UppercaseAction, UppercaseDeferred, UppercaseInstantiate, WithAction, WithDeferred, WithInstantiate,
} = allAbsent("typebox", [
  "AddImmutableDeferred", "AddOptionalDeferred", "AddReadonlyDeferred", "ArrayOptions", "Broaden", "CallConstruct",
  "CapitalizeAction", "CapitalizeDeferred", "CapitalizeInstantiate", "Compare", "ConditionalAction",
  "ConditionalDeferred", "ConditionalInstantiate", "ConstructorOptions", "ConstructorParametersAction",
  "ConstructorParametersDeferred", "ConstructorParametersInstantiate", "ConvertToIntegerKey", "CyclicCandidates",
  "CyclicCheck", "CyclicDependencies", "CyclicExtends", "CyclicOptions", "CyclicTarget", "Deferred",
  "DependentOptions", "Distribute", "EvaluateAction", "EvaluateDeferred", "EvaluateDependent", "EvaluateEnum",
  "EvaluateInstantiate", "EvaluatePropertyIntersect", "EvaluatePropertyUnion", "EvaluateTemplateLiteral",
  "EvaluateUnionFast", "ExcludeAction", "ExcludeDeferred", "ExcludeInstantiate", "ExtractAction", "ExtractDeferred",
  "ExtractInstantiate", "FunctionOptions", "IndexAction", "IndexDeferred", "IndexInstantiate", "InstanceTypeAction",
  "InstanceTypeDeferred", "InstanceTypeInstantiate", "InstantiateCyclic", "InterfaceAction", "InterfaceDeferred",
  "InterfaceInstantiate", "IntersectOptions", "IsInterfaceDeferred", "IsTemplateLiteralDeferred",
  "IsTemplateLiteralPattern", "KeyOfAction", "KeyOfDeferred", "KeyOfInstantiate", "LowercaseAction",
  "LowercaseDeferred", "LowercaseInstantiate", "MappedAction", "MappedDeferred", "MappedInstantiate",
  "ModuleDeferred", "ModuleInstantiate", "Narrow", "NonNullableAction", "NonNullableDeferred",
  "NonNullableInstantiate", "ObjectOptions", "OmitAction", "OmitDeferred", "OmitInstantiate", "ParametersAction",
  "ParametersDeferred", "ParametersInstantiate", "ParsePatternIntoTypes", "ParseTemplateIntoTypes", "PartialAction",
  "PartialDeferred", "PartialInstantiate", "PickAction", "PickDeferred", "PickInstantiate", "Priority",
  "ReadonlyObjectAction", "ReadonlyObjectDeferred", "ReadonlyObjectInstantiate", "RecordAction", "RecordDeferred",
  "RecordInstantiate", "RecordOptions", "RefInstantiate", "RemoveImmutableDeferred", "RemoveOptionalDeferred",
  "RemoveReadonlyDeferred", "RequiredAction", "RequiredDeferred", "RequiredInstantiate", "ReturnTypeAction",
  "ReturnTypeDeferred", "ReturnTypeInstantiate", "Script", "TemplateLiteralCreate", "TemplateLiteralDecode",
  "TemplateLiteralDecodeUnsafe", "TemplateLiteralDeferred", "TemplateLiteralEncode", "TemplateLiteralFromString",
  "TemplateLiteralFromTypes", "TupleOptions", "UncapitalizeAction", "UncapitalizeDeferred",
  "UncapitalizeInstantiate", "UnionOptions", "UppercaseAction", "UppercaseDeferred", "UppercaseInstantiate",
  "WithAction", "WithDeferred", "WithInstantiate",
]);

export const CompareResultDisjoint = 0;
export const CompareResultEqual = 1;
export const CompareResultLeftInside = 2;
export const CompareResultRightInside = 3;
export const _Array_ = types.Array_;
export const _Function_ = types.Function_;
export const _Object_ = types.Object_;

export { Type, default } from "pinion:packages/typebox_builders";
