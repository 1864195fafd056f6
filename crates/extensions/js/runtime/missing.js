// A placeholder for an export that the host does not have: every use throws an explanation.
export function missing(module, member) {
  const refuse = () => {
    const error = new Error(`'${member}' of '${module}' is not available to extensions here`);
    error.code = "ERR_NOT_AVAILABLE";
    throw error;
  };
  const quiet = new Set(["name", "length", "prototype"]);
  return new Proxy(function () {}, {
    apply: refuse,
    construct: refuse,
    get: (target, key) => (quiet.has(key) ? Reflect.get(target, key) : refuse()),
    set: refuse,
    defineProperty: refuse,
    deleteProperty: refuse,
    has: refuse,
    ownKeys: refuse,
  });
}
