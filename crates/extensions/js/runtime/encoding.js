// TextEncoder and TextDecoder.
import { ops } from "pinion:ops";

export class TextEncoder {
  get encoding() {
    return "utf-8";
  }

  encode(text = "") {
    return ops.text.encode(String(text).toWellFormed());
  }

  encodeInto(text, target) {
    let read = 0;
    let written = 0;
    for (const character of String(text)) {
      const bytes = ops.text.encode(character.toWellFormed());
      if (written + bytes.length > target.length) break;
      target.set(bytes, written);
      written += bytes.length;
      read += character.length;
    }
    return { read, written };
  }
}

const LABELS = {
  "utf-8": ["utf-8", "utf8", "unicode-1-1-utf-8", "unicode11utf8", "unicode20utf8", "x-unicode20utf8"],
  "utf-16le": ["utf-16le", "utf-16", "ucs-2", "ucs2", "unicode", "iso-10646-ucs-2", "unicodefeff"],
  "windows-1252": ["windows-1252", "latin1", "iso-8859-1", "iso8859-1", "l1", "ascii", "us-ascii", "cp1252", "iso_8859-1"],
};

function bytesOf(source) {
  if (source === undefined) return new Uint8Array();
  if (ArrayBuffer.isView(source)) return new Uint8Array(source.buffer, source.byteOffset, source.byteLength);
  if (source instanceof ArrayBuffer || source instanceof SharedArrayBuffer) return new Uint8Array(source);
  throw new TypeError("The \"input\" argument must be an instance of ArrayBuffer or ArrayBufferView");
}

// Returns the number of bytes at the end that begin an incomplete character.
function incomplete(bytes, encoding) {
  if (encoding === "utf-16le") {
    const odd = bytes.length % 2;
    const unit = bytes.length - odd >= 2 ? bytes[bytes.length - odd - 1] : 0;
    return odd + (unit >= 0xd8 && unit <= 0xdb ? 2 : 0);
  }
  if (encoding !== "utf-8") return 0;
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back];
    if (byte < 0x80) return 0;
    if (byte >= 0xc0) {
      const needed = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
      return back < needed ? back : 0;
    }
  }
  return 0;
}

export class TextDecoder {
  #encoding;
  #fatal;
  #ignoreBom;
  #rest = new Uint8Array();
  #started = false;

  constructor(label = "utf-8", options = {}) {
    const wanted = String(label).trim().toLowerCase();
    const found = Object.entries(LABELS).find(([, labels]) => labels.includes(wanted));
    if (!found) throw Object.assign(new RangeError(`The "${label}" encoding is not supported`), { code: "ERR_ENCODING_NOT_SUPPORTED" });
    this.#encoding = found[0];
    this.#fatal = Boolean(options?.fatal);
    this.#ignoreBom = Boolean(options?.ignoreBOM);
  }

  get encoding() {
    return this.#encoding;
  }

  get fatal() {
    return this.#fatal;
  }

  get ignoreBOM() {
    return this.#ignoreBom;
  }

  decode(source, options = {}) {
    let bytes = bytesOf(source);
    if (this.#rest.length > 0) {
      const joined = new Uint8Array(this.#rest.length + bytes.length);
      joined.set(this.#rest);
      joined.set(bytes, this.#rest.length);
      bytes = joined;
      this.#rest = new Uint8Array();
    }
    if (options?.stream) {
      const held = incomplete(bytes, this.#encoding);
      if (held > 0) {
        this.#rest = bytes.slice(bytes.length - held);
        bytes = bytes.subarray(0, bytes.length - held);
      }
    }
    let text = ops.text.decode(this.#encoding, bytes, this.#fatal);
    if (text === undefined) {
      this.#rest = new Uint8Array();
      this.#started = false;
      throw Object.assign(new TypeError("The encoded data was not valid for encoding " + this.#encoding), { code: "ERR_ENCODING_INVALID_ENCODED_DATA" });
    }
    if (!this.#started && !this.#ignoreBom && text.startsWith("\ufeff")) text = text.slice(1);
    this.#started = Boolean(options?.stream) && (this.#started || bytes.length > 0);
    return text;
  }
}
