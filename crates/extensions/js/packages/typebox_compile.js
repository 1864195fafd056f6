// `typebox/compile`: a schema as an object with methods. Nothing is compiled; checking walks the schema.

import { Clean, Convert, Create, Decode, Default, Encode, Errors, Parse, Check } from "pinion:packages/typebox_value";

export class Validator {
  #context;
  #type;
  constructor(context, type) { this.#context = context; this.#type = type; }
  IsAccelerated() { return false; }
  Context() { return this.#context; }
  Type() { return this.#type; }
  Schema() { return this.#type; }
  Code() { return JSON.stringify(this.#type); }
  Check(value) { return Check(this.#context, this.#type, value); }
  Parse(value) { return Parse(this.#context, this.#type, value); }
  Errors(value) { return Errors(this.#context, this.#type, value); }
  Clean(value) { return Clean(this.#context, this.#type, value); }
  Convert(value) { return Convert(this.#context, this.#type, value); }
  Create() { return Create(this.#context, this.#type); }
  Default(value) { return Default(this.#context, this.#type, value); }
  Decode(value) { return Decode(this.#context, this.#type, value); }
  Encode(value) { return Encode(this.#context, this.#type, value); }
}

/** Accepts `(schema)`, `(context, schema)`, or the older `(schema, references)`. */
export function Compile(...given) {
  if (given.length > 1 && Array.isArray(given[1])) {
    return new Validator(Object.fromEntries(given[1].map((schema) => [schema.$id, schema])), given[0]);
  }
  return given.length > 1 ? new Validator(given[0], given[1]) : new Validator({}, given[0]);
}
export const Code = (...given) => ({ code: Compile(...given).Code(), external: [] });
export const TypeCompiler = { Compile, Code: (schema) => Compile(schema).Code() };
export default Compile;
