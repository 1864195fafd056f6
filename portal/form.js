// A form from a JSON Schema. Every control is an object `{ element, read() }`: `read` gives the value, `undefined` for
// "left out", and throws a `FieldError` that names the field. What has no control of its own is written as JSON.
// A form refuses only values that cannot be sent; the clip checks the rest.

import { h, freshId } from "./dom.js";
import { exactNumber, isRaw, parseJson } from "./json.js";
import { plainSchema, typeOf, isNullable } from "./schema.js";

const DEEPEST_FIELDS = 6;
const LONG_TEXT = /^(text|content|body|message|prompt|markdown|html|code|script|query|note|description)$/i;

/** A value that cannot be sent. */
export class FieldError extends Error {
  constructor(message, input) {
    super(message);
    this.input = input;
  }
}

/** The controls of a schema, filled with `value` where one is given. */
export function makeForm(schema, value) {
  return control(schema, { root: schema, name: "", label: "", required: true, depth: 0, value });
}

/** A control for any value, written as JSON. */
export function jsonControl({ label, description, value, required, rows = 8, hint = "" }) {
  const text = value === undefined ? "" : JSON.stringify(value, null, 2);
  const input = h("textarea.code", { rows: Math.min(24, Math.max(rows, text.split("\n").length + 1)), spellcheck: "false", value: text });
  const element = labelled(label, description, input, required, hint);
  const read = () => {
    if (!input.value.trim()) {
      if (required) throw new FieldError(`${label} needs a JSON value`, input);
      return undefined;
    }
    try {
      return parseJson(input.value);
    } catch (error) {
      throw new FieldError(`${label} is not JSON: ${error.message}`, input);
    }
  };
  return { element, read, input };
}

/** Marks the field that cannot be sent and focuses it. */
export function showFieldError(form, error) {
  clearFieldErrors(form);
  if (!error.input) return;
  const note = h("p.field-error", { id: freshId("error") }, error.message);
  error.input.setAttribute("aria-invalid", "true");
  error.input.setAttribute("aria-errormessage", note.id);
  error.input.closest(".field")?.append(note);
  error.input.focus();
}

export function clearFieldErrors(form) {
  for (const note of form.querySelectorAll(".field-error")) note.remove();
  for (const input of form.querySelectorAll("[aria-invalid]")) {
    input.removeAttribute("aria-invalid");
    input.removeAttribute("aria-errormessage");
  }
}

function control(rawSchema, place) {
  const schema = plainSchema(rawSchema, place.root);
  const at = { ...place, schema, value: place.value === undefined ? schema.default : place.value };
  // A default makes a field optional even if `required` lists it, as clips do.
  at.required = place.required && schema.default === undefined && !isNullable(schema);
  at.description = schema.description;
  if (at.label === "" && place.depth > 0) at.label = schema.title ?? place.name;
  const make = CONTROLS[typeOf(schema)] ?? json;
  if (place.depth > DEEPEST_FIELDS || !fits(schema, at.value)) return json(at);
  return make(at);
}

/** Whether a control of this type can show the value; if not it is shown as JSON. */
function fits(schema, value) {
  if (value === undefined || value === null) return true;
  const type = typeOf(schema);
  if (type === "object") return typeof value === "object" && !Array.isArray(value);
  if (type === "array") return Array.isArray(value);
  if (type === "enum") return schema.enum.some((choice) => same(choice, value));
  if (type === "number" || type === "integer") return typeof value === "number" || isRaw(value);
  return type === "json" || type === "const" || typeof value === type;
}

const CONTROLS = { string, number: numeric, integer: numeric, boolean, enum: choice, const: constant, object, array };

function json(at) {
  return jsonControl({ label: at.label || "Input", description: at.description, value: at.value, required: at.required, rows: 3, hint: "any JSON" });
}

function string(at) {
  const { schema, value } = at;
  const kinds = { date: "date", time: "time", "date-time": "datetime-local", email: "email", uri: "url", password: "password" };
  const kind = kinds[schema.format] ?? "text";
  const isLong = kind === "text" && (LONG_TEXT.test(at.name) || (schema.maxLength ?? 0) > 200 || String(value ?? "").includes("\n"));
  const shown = kind === "datetime-local" ? toLocalTime(value) : value ?? "";
  const examples = Array.isArray(schema.examples) ? schema.examples.filter((example) => typeof example === "string") : [];
  const input = isLong
    ? h("textarea", { rows: 3, placeholder: examples[0], value: shown })
    : h("input", { type: kind, placeholder: examples[0], value: shown, step: kind === "time" || kind === "datetime-local" ? "1" : null, autocomplete: "off", spellcheck: "false" });
  const read = () => {
    if (input.value === "") {
      if (input.validity?.badInput) throw new FieldError(`${at.label} is not a ${schema.format}`, input);
      if (!at.required) return undefined;
      if (kind !== "text" || schema.minLength > 0) throw new FieldError(`${at.label} is required`, input);
      return "";
    }
    return kind === "datetime-local" ? new Date(input.value).toISOString() : input.value;
  };
  return { element: labelled(at.label, at.description, input, at.required, hintOf(schema)), read };
}

function hintOf(schema) {
  const parts = [];
  if (schema.pattern) parts.push(`pattern ${schema.pattern}`);
  if (schema.minimum !== undefined && schema.maximum !== undefined) parts.push(`${schema.minimum} to ${schema.maximum}`);
  else if (schema.minimum !== undefined) parts.push(`at least ${schema.minimum}`);
  else if (schema.maximum !== undefined) parts.push(`at most ${schema.maximum}`);
  if (schema.maxLength !== undefined) parts.push(`up to ${schema.maxLength} characters`);
  return parts.join(", ");
}

function toLocalTime(value) {
  const time = new Date(value ?? "");
  if (Number.isNaN(time.getTime())) return "";
  return new Date(time.getTime() - time.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

function numeric(at) {
  const isInteger = typeOf(at.schema) === "integer";
  const text = at.value === undefined || at.value === null ? "" : isRaw(at.value) ? at.value.rawJSON : String(at.value);
  const input = h("input.number", { type: "text", inputmode: isInteger ? "numeric" : "decimal", value: text, autocomplete: "off" });
  const form = isInteger ? /^-?\d+$/ : /^-?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
  const read = () => {
    const written = input.value.trim();
    if (!written) {
      if (at.required) throw new FieldError(`${at.label} needs a number`, input);
      return undefined;
    }
    if (!form.test(written)) throw new FieldError(`${at.label} is not ${isInteger ? "a whole number" : "a number"}`, input);
    return exactNumber(written);
  };
  return { element: labelled(at.label, at.description, input, at.required, hintOf(at.schema)), read };
}

function boolean(at) {
  if (!at.required && at.value === undefined) {
    return choice({ ...at, schema: { ...at.schema, enum: [true, false] } });
  }
  const input = h("input", { type: "checkbox", checked: at.value === true, id: freshId("field") });
  const label = h("label.check", { for: input.id }, input, h("span", at.label));
  return { element: h("div.field", label, describe(at.description, input)), read: () => input.checked };
}

function choice(at) {
  const choices = at.schema.enum;
  const options = choices.map((value, index) => h("option", { value: String(index) }, typeof value === "string" ? value : JSON.stringify(value)));
  if (!at.required) options.unshift(h("option", { value: "" }, "— not set —"));
  const input = h("select", options);
  const chosen = choices.findIndex((value) => same(value, at.value));
  if (chosen >= 0) input.value = String(chosen);
  const read = () => (input.value === "" ? undefined : choices[Number(input.value)]);
  return { element: labelled(at.label, at.description, input, at.required), read };
}

function constant(at) {
  const input = h("input", { type: "text", readonly: true, value: JSON.stringify(at.schema.const) });
  return { element: labelled(at.label, at.description, input, false), read: () => at.schema.const };
}

function object(at) {
  const { schema, depth } = at;
  const given = at.value ?? {};
  const required = new Set(schema.required ?? []);
  const fields = Object.entries(schema.properties).map(([name, property]) => ({
    name,
    ...control(property, { root: at.root, name, label: property?.title ?? name, required: required.has(name), depth: depth + 1, value: Object.hasOwn(given, name) ? given[name] : undefined }),
  }));
  // Required fields come first; what the schema does not name but the caller wrote is kept.
  const ordered = [...fields].sort((left, right) => required.has(right.name) - required.has(left.name));
  const unnamed = Object.entries(given).filter(([name]) => !Object.hasOwn(schema.properties, name));
  const read = () => {
    const value = {};
    for (const field of fields) {
      const part = field.read();
      if (part !== undefined) Object.defineProperty(value, field.name, { value: part, enumerable: true, configurable: true, writable: true });
    }
    for (const [name, part] of unnamed) value[name] = part;
    return value;
  };
  const elements = ordered.map((field) => field.element);
  if (depth === 0) return { element: h("div.fields", elements), read };
  const element = h("fieldset.field", h("legend", at.label, at.required ? null : optional()), at.description ? h("p.hint", at.description) : null, elements);
  if (at.required || at.value !== undefined) return { element, read };
  // An optional object without input is left out, even if some of its fields are required.
  const untouched = written(element);
  return { element, read: () => (written(element) === untouched ? undefined : read()) };
}

function array(at) {
  const rows = new Map();
  const list = h("div.items");
  const add = (value) => {
    const item = control(at.schema.items, { root: at.root, name: at.name, label: `${at.label || "item"} ${rows.size + 1}`, required: true, depth: at.depth + 1, value });
    const remove = h("button.small.quiet", { type: "button", "aria-label": `Remove ${at.label} entry` }, "Remove");
    const row = h("div.item", item.element, remove);
    remove.addEventListener("click", () => {
      rows.delete(row);
      row.remove();
      more.focus();
    });
    rows.set(row, item);
    list.append(row);
    return row;
  };
  const more = h("button.small", { type: "button" }, `Add ${at.label || "an"} entry`);
  more.addEventListener("click", () => add(undefined).querySelector("input, select, textarea")?.focus());
  for (const value of at.value ?? []) add(value);
  const read = () => {
    if (!rows.size && !at.required) return undefined;
    return [...rows.values()].map((item) => item.read()).filter((value) => value !== undefined);
  };
  const legend = h("legend", at.label, at.required ? null : optional());
  return { element: h("fieldset.field", legend, at.description ? h("p.hint", at.description) : null, list, more), read };
}

/** The values of all controls in an element, as one text. */
function written(element) {
  const inputs = [...element.querySelectorAll("input, select, textarea")];
  return JSON.stringify(inputs.map((input) => (input.type === "checkbox" ? input.checked : input.value)));
}

const optional = () => h("span.optional", " optional");

function labelled(label, description, input, required, hint = "") {
  input.id ||= freshId("field");
  const name = h("label", { for: input.id }, label, required || !label ? null : optional());
  return h("div.field", label ? name : null, input, describe([description, hint].filter(Boolean).join(" · "), input));
}

function describe(text, input) {
  if (!text) return null;
  const note = h("p.hint", { id: freshId("hint") }, text);
  input.setAttribute("aria-describedby", note.id);
  return note;
}

const same = (left, right) => left === right || JSON.stringify(left) === JSON.stringify(right);
