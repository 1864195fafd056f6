// Blob and File.
const contents = new WeakMap();

function bytesOf(part) {
  if (part instanceof Blob) return contents.get(part);
  if (part instanceof ArrayBuffer) return new Uint8Array(part).slice();
  if (ArrayBuffer.isView(part)) return new Uint8Array(part.buffer, part.byteOffset, part.byteLength).slice();
  return new TextEncoder().encode(String(part));
}

export function concat(parts) {
  const joined = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    joined.set(part, at);
    at += part.length;
  }
  return joined;
}

export class Blob {
  #type;

  constructor(parts = [], { type = "" } = {}) {
    contents.set(this, concat([...parts].map(bytesOf)));
    this.#type = /[^\x20-\x7e]/.test(type) ? "" : String(type).toLowerCase();
  }

  get size() {
    return contents.get(this).length;
  }

  get type() {
    return this.#type;
  }

  async arrayBuffer() {
    return contents.get(this).slice().buffer;
  }

  async bytes() {
    return contents.get(this).slice();
  }

  async text() {
    return new TextDecoder().decode(contents.get(this));
  }

  slice(start, end, type = "") {
    return new Blob([contents.get(this).slice(start, end)], { type });
  }

  stream() {
    const bytes = contents.get(this);
    return new ReadableStream({
      start(controller) {
        if (bytes.length > 0) controller.enqueue(bytes.slice());
        controller.close();
      },
    });
  }

  get [Symbol.toStringTag]() {
    return "Blob";
  }
}

export class File extends Blob {
  #name;
  #lastModified;

  constructor(parts, name, options = {}) {
    super(parts, options);
    this.#name = String(name);
    this.#lastModified = options.lastModified ?? Date.now();
  }

  get name() {
    return this.#name;
  }

  get lastModified() {
    return this.#lastModified;
  }

  get webkitRelativePath() {
    return "";
  }

  get [Symbol.toStringTag]() {
    return "File";
  }
}
