// Reads the input schema of a command, in whatever form a clip gave it, into something a form can be made of.

const SCHEMA_WORDS = ["type", "properties", "$schema", "$ref", "anyOf", "oneOf", "allOf", "enum", "const"];
const DEEPEST_REFERENCE = 16;

/**
 * Reads the description of an input: `{ kind: "none" }`, `{ kind: "text", text }` for prose without a form,
 * or `{ kind: "schema", schema }`.
 */
export function readSchema(text) {
  if (!text || !text.trim()) return { kind: "none" };
  let schema;
  try {
    schema = JSON.parse(text);
  } catch {
    return { kind: "text", text };
  }
  if (schema === true) return { kind: "none" };
  if (schema === null || typeof schema !== "object" || Array.isArray(schema)) return { kind: "text", text };
  if (isShorthand(schema)) schema = fromShorthand(schema);
  return { kind: "schema", schema };
}

function isShorthand(schema) {
  const entries = Object.values(schema);
  return entries.length > 0
    && !SCHEMA_WORDS.some((word) => word in schema)
    && entries.every((entry) => entry && typeof entry === "object" && !Array.isArray(entry));
}

function fromShorthand(fields) {
  const properties = {};
  const required = [];
  for (const [name, { required: isRequired, ...field }] of Object.entries(fields)) {
    properties[name] = field;
    if (isRequired === true) required.push(name);
  }
  return { type: "object", properties, required };
}

/** Reports whether a call takes no input. */
export function isEmptyObject(schema) {
  return schema.type === "object" && Object.keys(schema.properties ?? {}).length === 0
    && (schema.additionalProperties === false || schema.additionalProperties === undefined);
}

/** Follows references, takes `null` out of choices and merges `allOf`, so that one plain schema is left. */
export function plainSchema(schema, root) {
  let current = schema === true || schema === undefined ? {} : schema;
  const outer = {};
  for (let hops = 0; hops < DEEPEST_REFERENCE; hops += 1) {
    for (const word of ["title", "description", "default"]) {
      if (current[word] !== undefined && outer[word] === undefined) outer[word] = current[word];
    }
    if (typeof current.$ref === "string") {
      const { $ref, ...beside } = current;
      const target = lookUp($ref, root);
      if (!target) return { ...beside, ...outer };
      current = { ...target, ...beside };
    } else if (Array.isArray(current.allOf)) {
      const { allOf, ...beside } = current;
      current = allOf.map((part) => plainSchema(part, root)).reduce(merge, beside);
    } else {
      const choices = current.anyOf ?? current.oneOf;
      if (!Array.isArray(choices)) break;
      const { anyOf, oneOf, ...beside } = current;
      const real = choices.filter((choice) => choice?.type !== "null");
      if (real.length === 1) {
        current = { ...beside, ...real[0], nullable: real.length < choices.length };
      } else if (real.length && real.every((choice) => choice && "const" in choice)) {
        current = { ...beside, enum: real.map((choice) => choice.const) };
      } else if (real.length && real.every((choice) => choice && Array.isArray(choice.enum))) {
        current = { ...beside, enum: real.flatMap((choice) => choice.enum) };
      } else {
        return { ...beside, ...outer, undecided: true };
      }
    }
  }
  return { ...current, ...outer };
}

function merge(left, right) {
  return {
    ...left,
    ...right,
    properties: { ...left.properties, ...right.properties },
    required: [...(left.required ?? []), ...(right.required ?? [])],
  };
}

function lookUp(reference, root) {
  if (reference === "#") return root;
  if (!reference.startsWith("#/")) return null;
  let found = root;
  for (const part of reference.slice(2).split("/")) {
    const name = decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~");
    if (!found || typeof found !== "object" || !Object.hasOwn(found, name)) return null;
    found = found[name];
  }
  return found && typeof found === "object" ? found : null;
}

/** The one type a field is drawn for; `json` where a form has no control for it. */
export function typeOf(schema) {
  if (schema.undecided) return "json";
  if ("const" in schema) return "const";
  if (Array.isArray(schema.enum)) return "enum";
  const types = [schema.type].flat().filter((type) => type && type !== "null");
  if (types.length > 1) return "json";
  const type = types[0] ?? (schema.properties ? "object" : schema.items ? "array" : "json");
  if (type === "object" && !Object.keys(schema.properties ?? {}).length) return "json";
  if (type === "array" && (Array.isArray(schema.items) || schema.prefixItems)) return "json";
  return type;
}

/** Reports whether `null` is a valid value. */
export const isNullable = (schema) => schema.nullable === true || [schema.type].flat().includes("null");
