// FormData and its multipart encoding.
import { Blob, File, concat } from "pinion:runtime/blob";

function entryOf(value, name) {
  if (!(value instanceof Blob)) return String(value).toWellFormed();
  if (value instanceof File && name === undefined) return value;
  return new File([value], name ?? "blob", { type: value.type });
}

export class FormData {
  #entries = [];

  append(name, value, file) {
    this.#entries.push([String(name), entryOf(value, file)]);
  }

  set(name, value, file) {
    const at = this.#entries.findIndex((entry) => entry[0] === String(name));
    if (at < 0) return this.append(name, value, file);
    this.#entries[at] = [String(name), entryOf(value, file)];
    this.#entries = this.#entries.filter((entry, index) => index <= at || entry[0] !== String(name));
  }

  get(name) {
    return this.#entries.find((entry) => entry[0] === String(name))?.[1] ?? null;
  }

  getAll(name) {
    return this.#entries.filter((entry) => entry[0] === String(name)).map((entry) => entry[1]);
  }

  has(name) {
    return this.#entries.some((entry) => entry[0] === String(name));
  }

  delete(name) {
    this.#entries = this.#entries.filter((entry) => entry[0] !== String(name));
  }

  forEach(callback, self) {
    for (const [name, value] of this.#entries) callback.call(self, value, name, this);
  }

  *entries() {
    yield* this.#entries.map((entry) => [...entry]);
  }

  *keys() {
    for (const [name] of this.#entries) yield name;
  }

  *values() {
    for (const [, value] of this.#entries) yield value;
  }

  [Symbol.iterator]() {
    return this.entries();
  }

  get [Symbol.toStringTag]() {
    return "FormData";
  }
}

// Encodes the parts of `form` between lines of `boundary`.
export async function multipart(form, boundary) {
  const encoder = new TextEncoder();
  const quote = (text) => text.replace(/\r?\n|\r/g, "%0D%0A").replaceAll("\"", "%22");
  const parts = [];
  for (const [name, value] of form) {
    let head = `--${boundary}\r\nContent-Disposition: form-data; name="${quote(name)}"`;
    if (value instanceof Blob) {
      head += `; filename="${quote(value.name)}"\r\nContent-Type: ${value.type || "application/octet-stream"}`;
      parts.push(encoder.encode(`${head}\r\n\r\n`), await value.bytes(), encoder.encode("\r\n"));
    } else {
      parts.push(encoder.encode(`${head}\r\n\r\n${value.replace(/\r?\n|\r/g, "\r\n")}\r\n`));
    }
  }
  parts.push(encoder.encode(`--${boundary}--\r\n`));
  return concat(parts);
}
