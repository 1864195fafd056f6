// Headers: names in lower case, values joined.
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

function nameOf(name) {
  const text = String(name);
  if (!TOKEN.test(text)) throw new TypeError(`Headers: ${text} is an invalid header name.`);
  return text.toLowerCase();
}

function valueOf(value) {
  const text = String(value).replace(/^[\t\n\r ]+|[\t\n\r ]+$/g, "");
  if (/[\0\r\n]/.test(text)) throw new TypeError(`Headers: ${JSON.stringify(text)} is an invalid header value.`);
  return text;
}

export class Headers {
  #list = [];

  constructor(init) {
    if (init === undefined || init === null) return;
    if (typeof init !== "object") throw new TypeError("Headers: the argument must be an object or an iterable of pairs");
    const pairs = typeof init[Symbol.iterator] === "function" ? init : Object.entries(init);
    for (const pair of pairs) {
      const [name, value] = pair;
      this.append(name, value);
    }
  }

  append(name, value) {
    this.#list.push([nameOf(name), valueOf(value)]);
  }

  set(name, value) {
    const known = nameOf(name);
    const at = this.#list.findIndex((pair) => pair[0] === known);
    if (at < 0) return this.append(name, value);
    this.#list[at] = [known, valueOf(value)];
    this.#list = this.#list.filter((pair, index) => index <= at || pair[0] !== known);
  }

  get(name) {
    const known = nameOf(name);
    const values = this.#list.filter((pair) => pair[0] === known).map((pair) => pair[1]);
    return values.length > 0 ? values.join(", ") : null;
  }

  has(name) {
    const known = nameOf(name);
    return this.#list.some((pair) => pair[0] === known);
  }

  delete(name) {
    const known = nameOf(name);
    this.#list = this.#list.filter((pair) => pair[0] !== known);
  }

  getSetCookie() {
    return this.#list.filter((pair) => pair[0] === "set-cookie").map((pair) => pair[1]);
  }

  *entries() {
    const names = [...new Set(this.#list.map((pair) => pair[0]))].sort();
    for (const name of names) {
      if (name === "set-cookie") for (const value of this.getSetCookie()) yield [name, value];
      else yield [name, this.get(name)];
    }
  }

  *keys() {
    for (const [name] of this.entries()) yield name;
  }

  *values() {
    for (const [, value] of this.entries()) yield value;
  }

  [Symbol.iterator]() {
    return this.entries();
  }

  forEach(callback, self) {
    for (const [name, value] of this.entries()) callback.call(self, value, name, this);
  }

  get [Symbol.toStringTag]() {
    return "Headers";
  }
}
