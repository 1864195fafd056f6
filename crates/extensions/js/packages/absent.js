// Public names that this host does not implement. They can be imported, named and passed around; only using one throws,
// with its name.

function fail(module, member) {
  throw new Error(`${member} of ${module} is not available in this host`);
}

/** Creates a placeholder for `member` of `module`: calling or constructing it throws. */
export function absent(module, member) {
  const target = function () {};
  Object.defineProperty(target, "name", { value: member });
  return new Proxy(target, {
    apply: () => fail(module, member),
    construct: () => fail(module, member),
    get(function_, key, receiver) {
      if (typeof key === "symbol" || key in function_) return Reflect.get(function_, key, receiver);
      // Read from every value that is awaited or inspected, so not a use of the member.
      if (key === "then" || key === "toJSON" || key === "$$typeof") return undefined;
      return fail(module, `${member}.${key}`);
    },
  });
}

/** Creates placeholders for many members, by name. */
export function allAbsent(module, members) {
  return Object.fromEntries(members.map((member) => [member, absent(module, member)]));
}
