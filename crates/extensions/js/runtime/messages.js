// Request and Response: headers and a body that can be read once.
import { Blob, concat } from "pinion:runtime/blob";
import { FormData, multipart } from "pinion:runtime/form";
import { Headers } from "pinion:runtime/headers";
import { ReadableStream, isDisturbed } from "pinion:runtime/readable";

function bytesStream(load) {
  return new ReadableStream({
    async pull(controller) {
      const bytes = await load();
      if (bytes.length > 0) controller.enqueue(bytes);
      controller.close();
    },
  }, { highWaterMark: 0 });
}

// Converts a script's body to a stream, its bytes if they are known, and its type.
function bodyOf(init) {
  if (init === undefined || init === null) return { stream: null, bytes: null, type: null };
  if (init instanceof ReadableStream) return { stream: init, bytes: null, type: null };
  const known = (bytes, type) => ({ stream: bytesStream(async () => await bytes), bytes, type });
  if (init instanceof Blob) return known(init.bytes(), init.type || null);
  if (init instanceof URLSearchParams) return known(new TextEncoder().encode(init.toString()), "application/x-www-form-urlencoded;charset=UTF-8");
  if (init instanceof FormData) {
    const boundary = `----formdata-pinion-${Math.random().toString(36).slice(2)}${Math.random().toString(36).slice(2)}`;
    return known(multipart(init, boundary), `multipart/form-data; boundary=${boundary}`);
  }
  if (init instanceof ArrayBuffer) return known(new Uint8Array(init).slice(), null);
  if (ArrayBuffer.isView(init)) return known(new Uint8Array(init.buffer, init.byteOffset, init.byteLength).slice(), null);
  if (typeof init[Symbol.asyncIterator] === "function") return { stream: ReadableStream.from(init), bytes: null, type: null };
  return known(new TextEncoder().encode(String(init)), "text/plain;charset=UTF-8");
}

class Message {
  #body;
  #headers;

  constructor(headers, body) {
    this.#headers = headers;
    this.#body = body;
    if (body.type && !headers.has("content-type")) headers.set("content-type", body.type);
  }

  static body(message) {
    return message.#body;
  }

  get headers() {
    return this.#headers;
  }

  get body() {
    return this.#body.stream;
  }

  get bodyUsed() {
    return this.#body.stream !== null && isDisturbed(this.#body.stream);
  }

  async bytes() {
    const { stream } = this.#body;
    if (stream === null) return new Uint8Array();
    if (this.bodyUsed || stream.locked) throw new TypeError("Body is unusable: Body has already been read");
    const parts = [];
    for await (const part of stream) parts.push(typeof part === "string" ? new TextEncoder().encode(part) : part);
    return parts.length === 1 ? parts[0] : concat(parts);
  }

  async arrayBuffer() {
    const bytes = await this.bytes();
    return bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
  }

  async text() {
    return new TextDecoder().decode(await this.bytes());
  }

  async json() {
    return JSON.parse(await this.text());
  }

  async blob() {
    return new Blob([await this.bytes()], { type: this.headers.get("content-type") ?? "" });
  }

  async formData() {
    const type = this.headers.get("content-type") ?? "";
    if (!type.startsWith("application/x-www-form-urlencoded")) throw new TypeError(`Content-Type was not one of "multipart/form-data" or "application/x-www-form-urlencoded".`);
    const form = new FormData();
    for (const [name, value] of new URLSearchParams(await this.text())) form.append(name, value);
    return form;
  }

  // Splits one body into two, for clone().
  split() {
    const { stream, bytes, type } = this.#body;
    if (this.bodyUsed) throw new TypeError("Body has already been consumed.");
    if (stream === null) return { stream: null, bytes: null, type: null };
    const [own, other] = stream.tee();
    this.#body = { stream: own, bytes, type };
    return { stream: other, bytes, type: null };
  }
}

export const sentBody = (message) => Message.body(message);

export class Request extends Message {
  #url;
  #method;
  #signal;
  #redirect;

  constructor(input, init = {}) {
    const from = input instanceof Request ? input : null;
    const method = String(init.method ?? from?.method ?? "GET");
    const upper = method.toUpperCase();
    const given = init.body !== undefined && init.body !== null;
    if (given && (upper === "GET" || upper === "HEAD")) throw new TypeError("Request with GET/HEAD method cannot have body.");
    const body = given ? bodyOf(init.body) : from ? Message.body(from) : bodyOf(null);
    super(new Headers(init.headers ?? from?.headers), body);
    try {
      this.#url = from ? from.url : new URL(String(input)).href;
    } catch (error) {
      throw new TypeError(`Failed to parse URL from ${String(input)}`, { cause: error });
    }
    this.#method = ["DELETE", "GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH"].includes(upper) ? upper : method;
    this.#signal = init.signal ?? from?.signal ?? new AbortController().signal;
    this.#redirect = init.redirect ?? from?.redirect ?? "follow";
  }

  get url() { return this.#url; }
  get method() { return this.#method; }
  get signal() { return this.#signal; }
  get redirect() { return this.#redirect; }
  get cache() { return "default"; }
  get credentials() { return "same-origin"; }
  get mode() { return "cors"; }

  clone() {
    const copy = new Request(this.#url, { method: this.#method, headers: this.headers, signal: this.#signal, redirect: this.#redirect });
    const { stream } = this.split();
    return stream === null ? copy : new Request(copy, { body: stream });
  }

  get [Symbol.toStringTag]() {
    return "Request";
  }
}

export class Response extends Message {
  #status;
  #statusText;
  #url = "";
  #redirected = false;
  #type = "default";

  constructor(body = null, init = {}) {
    const status = init.status ?? 200;
    if (!Number.isInteger(status) || status < 200 || status > 599) throw new RangeError("init[\"status\"] must be in the range of 200 to 599, inclusive.");
    super(new Headers(init.headers), bodyOf(body));
    this.#status = status;
    this.#statusText = init.statusText ?? "";
  }

  // Creates a response from the network.
  static received({ status, statusText, headers, url, redirected }, stream) {
    const response = new Response(stream, { headers });
    response.#status = status;
    response.#statusText = statusText;
    response.#url = url;
    response.#redirected = redirected;
    response.#type = "basic";
    return response;
  }

  static error() {
    const response = new Response();
    response.#status = 0;
    response.#type = "error";
    return response;
  }

  static json(data, init = {}) {
    const headers = new Headers(init.headers);
    if (!headers.has("content-type")) headers.set("content-type", "application/json");
    return new Response(JSON.stringify(data), { ...init, headers });
  }

  static redirect(url, status = 302) {
    return new Response(null, { status, headers: { location: new URL(url).href } });
  }

  get status() { return this.#status; }
  get ok() { return this.#status >= 200 && this.#status < 300; }
  get statusText() { return this.#statusText; }
  get url() { return this.#url; }
  get redirected() { return this.#redirected; }
  get type() { return this.#type; }

  clone() {
    const facts = { status: this.#status, statusText: this.#statusText, headers: this.headers, url: this.#url, redirected: this.#redirected };
    return Response.received(facts, this.split().stream);
  }

  get [Symbol.toStringTag]() {
    return "Response";
  }
}
