// Helpers of all schema builders: a schema is plain JSON Schema, and the library's own data is in members that are
// neither enumerated nor serialised.

export const Kind = Symbol.for("TypeBox.Kind");
export const OptionalKind = Symbol.for("TypeBox.Optional");
export const ReadonlyKind = Symbol.for("TypeBox.Readonly");
export const Hint = Symbol.for("TypeBox.Hint");
export const TransformKind = Symbol.for("TypeBox.Transform");

/** Sets a member that is not enumerated. */
export function hide(schema, name, value) {
  Object.defineProperty(schema, name, { value, enumerable: false, writable: true, configurable: true });
  return schema;
}

/** Creates a schema of `kind` with these members, then the caller's options. */
export function make(kind, members, options) {
  const schema = { ...members, ...options };
  hide(schema, "~kind", kind);
  hide(schema, Kind, kind);
  return schema;
}

/** Copies a schema with its hidden members, and more options. */
export function copy(schema, options) {
  const same = Object.create(Object.getPrototypeOf(schema), Object.getOwnPropertyDescriptors(schema));
  return options === undefined ? same : Object.assign(same, options);
}

const MARKS = { "~optional": [OptionalKind, "Optional"], "~readonly": [ReadonlyKind, "Readonly"] };

/** Copies a schema and adds a mark such as `~optional`. */
export function mark(schema, name) {
  const marked = hide(copy(schema), name, true);
  const [symbol, word] = MARKS[name] ?? [];
  return symbol === undefined ? marked : hide(marked, symbol, word);
}

/** Copies a schema without that mark. */
export function unmark(schema, name) {
  const plain = copy(schema);
  delete plain[name];
  if (MARKS[name] !== undefined) delete plain[MARKS[name][0]];
  return plain;
}

export const kindOf = (schema) => schema?.["~kind"] ?? schema?.[Kind];

const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

export function IsKind(schema, kind) {
  return isObject(schema) && kindOf(schema) === kind;
}
export const IsSchema = (value) => isObject(value);
export const IsOptional = (schema) => isObject(schema) && "~optional" in schema;
export const IsReadonly = (schema) => isObject(schema) && "~readonly" in schema;
export const IsImmutable = (schema) => isObject(schema) && "~immutable" in schema;
export const IsCodec = (schema) => isObject(schema) && "~codec" in schema;
export const IsRefine = (schema) => isObject(schema) && "~refine" in schema;
export const IsUnsafe = (schema) => isObject(schema) && "~unsafe" in schema;

const guard = (kind) => (schema) => IsKind(schema, kind);
export const IsAny = guard("Any");
export const IsArray = guard("Array");
export const IsBigInt = guard("BigInt");
export const IsBoolean = guard("Boolean");
export const IsCall = guard("Call");
export const IsConstructor = guard("Constructor");
export const IsCyclic = guard("Cyclic");
export const IsDeferred = guard("Deferred");
export const IsDependent = guard("Dependent");
export const IsEnum = guard("Enum");
export const IsFunction = guard("Function");
export const IsGeneric = guard("Generic");
export const IsIdentifier = guard("Identifier");
export const IsInfer = guard("Infer");
export const IsInteger = guard("Integer");
export const IsIntersect = guard("Intersect");
export const IsLiteral = guard("Literal");
export const IsNever = guard("Never");
export const IsNull = guard("Null");
export const IsNumber = guard("Number");
export const IsObject = guard("Object");
export const IsParameter = guard("Parameter");
export const IsRecord = guard("Record");
export const IsRef = guard("Ref");
export const IsRest = guard("Rest");
export const IsString = guard("String");
export const IsSymbol = guard("Symbol");
export const IsTemplateLiteral = guard("TemplateLiteral");
export const IsThis = guard("This");
export const IsTuple = guard("Tuple");
export const IsUndefined = guard("Undefined");
export const IsUnion = guard("Union");
export const IsUnknown = guard("Unknown");
export const IsVoid = guard("Void");

export const IsEnumValue = (value) => typeof value === "string" || typeof value === "number";
export const IsLiteralValue = (value) => ["bigint", "boolean", "number", "string"].includes(typeof value);
const literalOf = (type) => (schema) => IsLiteral(schema) && typeof schema.const === type;
export const IsLiteralBigInt = literalOf("bigint");
export const IsLiteralBoolean = literalOf("boolean");
export const IsLiteralNumber = literalOf("number");
export const IsLiteralString = literalOf("string");
export const IsRefinement = (value) => isObject(value) && typeof value.check === "function";
/** Reports whether a value may be a compiled TypeScript enum, which maps names to values, and numbers back to names. */
export const IsTypeScriptEnumLike = (value) => isObject(value) && !IsSchema(value["~kind"]);
