// URL and URLSearchParams; URLs are parsed natively.
import { ops } from "pinion:ops";

function decode(text) {
  const spaced = text.replaceAll("+", " ");
  try {
    return decodeURIComponent(spaced);
  } catch {
    return ops.url.decode(spaced);
  }
}

function encode(text) {
  return encodeURIComponent(text.toWellFormed())
    .replace(/[!'()~]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`)
    .replaceAll("%20", "+");
}

let connect;

export class URLSearchParams {
  #list = [];
  #changed = null;

  static {
    connect = (params, query, changed) => {
      params.#list = URLSearchParams.#parse(query);
      params.#changed = changed;
    };
  }

  static #parse(text) {
    const query = text.startsWith("?") ? text.slice(1) : text;
    return query.split("&").filter((part) => part !== "").map((part) => {
      const at = part.indexOf("=");
      return at < 0 ? [decode(part), ""] : [decode(part.slice(0, at)), decode(part.slice(at + 1))];
    });
  }

  constructor(init = "") {
    if (init === null || (typeof init !== "object" && typeof init !== "function")) {
      this.#list = URLSearchParams.#parse(String(init));
    } else if (typeof init[Symbol.iterator] === "function") {
      this.#list = Array.from(init, (pair) => {
        const [name, value, ...rest] = pair;
        if (value === undefined || rest.length > 0) throw new TypeError("Each query pair must be an iterable [name, value] tuple");
        return [String(name).toWellFormed(), String(value).toWellFormed()];
      });
    } else {
      this.#list = Object.entries(init).map(([name, value]) => [name.toWellFormed(), String(value).toWellFormed()]);
    }
  }

  get size() {
    return this.#list.length;
  }

  #update() {
    this.#changed?.(this.toString());
  }

  append(name, value) {
    this.#list.push([String(name).toWellFormed(), String(value).toWellFormed()]);
    this.#update();
  }

  delete(name, value) {
    this.#list = this.#list.filter((pair) => pair[0] !== String(name) || (value !== undefined && pair[1] !== String(value)));
    this.#update();
  }

  get(name) {
    return this.#list.find((pair) => pair[0] === String(name))?.[1] ?? null;
  }

  getAll(name) {
    return this.#list.filter((pair) => pair[0] === String(name)).map((pair) => pair[1]);
  }

  has(name, value) {
    return this.#list.some((pair) => pair[0] === String(name) && (value === undefined || pair[1] === String(value)));
  }

  set(name, value) {
    const at = this.#list.findIndex((pair) => pair[0] === String(name));
    if (at < 0) return this.append(name, value);
    this.#list[at] = [this.#list[at][0], String(value).toWellFormed()];
    this.#list = this.#list.filter((pair, index) => index <= at || pair[0] !== String(name));
    this.#update();
  }

  sort() {
    this.#list.sort((one, other) => (one[0] < other[0] ? -1 : one[0] > other[0] ? 1 : 0));
    this.#update();
  }

  forEach(callback, self) {
    for (const [name, value] of this.#list) callback.call(self, value, name, this);
  }

  *entries() {
    for (const [name, value] of this.#list) yield [name, value];
  }

  *keys() {
    for (const [name] of this.#list) yield name;
  }

  *values() {
    for (const [, value] of this.#list) yield value;
  }

  [Symbol.iterator]() {
    return this.entries();
  }

  toString() {
    return this.#list.map(([name, value]) => `${encode(name)}=${encode(value)}`).join("&");
  }

  get [Symbol.toStringTag]() {
    return "URLSearchParams";
  }
}

export class URL {
  #parts;
  #params = null;

  constructor(text, base) {
    if (arguments.length === 0) throw new TypeError("The \"url\" argument must be specified");
    const input = String(text);
    const parsed = ops.url.parse(input, base === undefined ? undefined : String(base));
    if (parsed === undefined) {
      const error = new TypeError("Invalid URL");
      error.code = "ERR_INVALID_URL";
      error.input = input;
      if (base !== undefined) error.base = String(base);
      throw error;
    }
    this.#parts = parsed;
  }

  static canParse(text, base) {
    return ops.url.parse(String(text), base === undefined ? undefined : String(base)) !== undefined;
  }

  static parse(text, base) {
    return URL.canParse(text, base) ? new URL(text, base) : null;
  }

  static createObjectURL() {
    throw new Error("URL.createObjectURL is not available to extensions here");
  }

  static revokeObjectURL() {}

  #set(part, value) {
    this.#parts = ops.url.set(this.#parts.href, part, String(value)) ?? this.#parts;
    if (this.#params && (part === "href" || part === "search")) connect(this.#params, this.#parts.search, (query) => this.#replaceQuery(query));
  }

  #replaceQuery(query) {
    this.#parts = ops.url.set(this.#parts.href, "search", query) ?? this.#parts;
  }

  get href() { return this.#parts.href; }
  set href(value) {
    const parsed = ops.url.parse(String(value), undefined);
    if (parsed === undefined) throw Object.assign(new TypeError("Invalid URL"), { code: "ERR_INVALID_URL", input: String(value) });
    this.#parts = parsed;
    if (this.#params) connect(this.#params, parsed.search, (query) => this.#replaceQuery(query));
  }
  get origin() { return this.#parts.origin; }
  get protocol() { return this.#parts.protocol; }
  set protocol(value) { this.#set("protocol", value); }
  get username() { return this.#parts.username; }
  set username(value) { this.#set("username", value); }
  get password() { return this.#parts.password; }
  set password(value) { this.#set("password", value); }
  get host() { return this.#parts.host; }
  set host(value) { this.#set("host", value); }
  get hostname() { return this.#parts.hostname; }
  set hostname(value) { this.#set("hostname", value); }
  get port() { return this.#parts.port; }
  set port(value) { this.#set("port", value); }
  get pathname() { return this.#parts.pathname; }
  set pathname(value) { this.#set("pathname", value); }
  get search() { return this.#parts.search; }
  set search(value) { this.#set("search", value); }
  get hash() { return this.#parts.hash; }
  set hash(value) { this.#set("hash", value); }

  get searchParams() {
    if (this.#params === null) {
      this.#params = new URLSearchParams();
      connect(this.#params, this.#parts.search, (query) => this.#replaceQuery(query));
    }
    return this.#params;
  }

  toString() {
    return this.#parts.href;
  }

  toJSON() {
    return this.#parts.href;
  }

  get [Symbol.toStringTag]() {
    return "URL";
  }
}
