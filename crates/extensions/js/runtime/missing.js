// What stands for an export that the host does not have: it explains itself when it is used.
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
