// The names that a script sees. `host` are the functions of sandbox.rs; the script does not see it.
(host) => {
  const LIMIT = 32;
  const EXIT = Symbol("exit");
  const calls = new Map();
  const waiting = [];
  let last = 0;
  let running = 0;

  const textOf = (value) => {
    if (typeof value === "string") return value;
    return JSON.stringify(value) ?? String(value);
  };

  const call = (name, args) =>
    new Promise((resolve, reject) => {
      const json = JSON.stringify(args ?? {});
      const begin = () => {
        running += 1;
        last += 1;
        calls.set(last, { resolve, reject });
        host.begin(last, name, json);
      };
      if (running < LIMIT) begin();
      else waiting.push(begin);
    });

  const settle = (id, succeeded, json) => {
    const { resolve, reject } = calls.get(id);
    calls.delete(id);
    running -= 1;
    waiting.shift()?.();
    if (succeeded) resolve(JSON.parse(json));
    else reject(new Error(json));
  };

  const tools = new Proxy(Object.create(null), {
    get: (_, name) => {
      const known = typeof name === "string" ? host.find(name) : undefined;
      return known === undefined ? undefined : (args) => call(known, args);
    },
    has: (_, name) => typeof name === "string" && host.find(name) !== undefined,
    ownKeys: () => JSON.parse(host.identifiers()),
    getOwnPropertyDescriptor: (_, name) =>
      host.find(name) === undefined ? undefined : { value: tools[name], enumerable: true, configurable: true },
    set: () => false,
  });

  const image = (value) => {
    const given = typeof value === "object" && value !== null ? (value.image_url ?? value) : value;
    if (typeof given === "string") {
      const parts = /^data:([a-z]+\/[a-z0-9.+-]+);base64,(.*)$/s.exec(given);
      if (!parts) throw new TypeError("image() takes a base64 data: URL or an image block");
      host.image(parts[1], parts[2]);
    } else if (given?.type === "image" && typeof given.data === "string") {
      host.image(String(given.mimeType), given.data);
    } else {
      throw new TypeError("image() takes a base64 data: URL or an image block");
    }
  };

  const print = (...values) => host.print(values.map(textOf).join(" "));

  const store = (key, value) => {
    if (typeof key !== "string") throw new TypeError("store() takes a text as key");
    host.store(key, value === undefined ? undefined : JSON.stringify(value));
  };

  const load = (key) => {
    const json = host.load(String(key));
    return json === undefined ? undefined : JSON.parse(json);
  };

  const parsed = (json) => (json === undefined ? undefined : JSON.parse(json));
  const globals = {
    tools,
    text: (value) => host.text(textOf(value)),
    image,
    console: { log: print, info: print, warn: print, error: print, debug: print },
    exit: () => {
      host.exit();
      throw EXIT;
    },
    store,
    load,
    searchTools: async (query, options) =>
      JSON.parse(host.search(String(query), Number(options?.limit ?? 8), options?.namespace)),
    describeTool: async (name) => host.describe(String(name)),
    describeNamespace: async (name) => parsed(host.namespace(String(name))),
  };
  for (const [name, value] of Object.entries(globals)) {
    Object.defineProperty(globalThis, name, { value, writable: true, configurable: true });
  }
  Object.defineProperty(globalThis, "ALL_TOOLS", { get: () => JSON.parse(host.list()), configurable: true });

  const explain = (error) => {
    if (!(error instanceof Error)) return `Error: ${textOf(error)}`;
    const stack = typeof error.stack === "string" ? error.stack.trimEnd() : "";
    return stack === "" ? String(error) : `${error}\n${stack}`;
  };

  const run = (script) => {
    script().then(
      (value) => {
        if (value !== undefined) host.text(textOf(value));
        host.finish(undefined);
      },
      (error) => host.finish(error === EXIT ? undefined : explain(error)),
    ).catch((error) => host.finish(explain(error)));
  };

  return { run, settle };
};
