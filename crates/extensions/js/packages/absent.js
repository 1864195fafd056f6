// Public names this host has nothing behind. They can be imported, named and passed around;
// only using one fails, and the failure says which.

function fail(module, member) {
  throw new Error(`${member} of ${module} is not available in this host`);
}

/** A stand-in for `member` of `module`: callable and constructible, and each of that throws. */
export function absent(module, member) {
  const target = function () {};
  Object.defineProperty(target, "name", { value: member });
  return new Proxy(target, {
    apply: () => fail(module, member),
    construct: () => fail(module, member),
    get(function_, key, receiver) {
      if (typeof key === "symbol" || key in function_) return Reflect.get(function_, key, receiver);
      // Asked of every value that is awaited or inspected, so not a use of the member.
      if (key === "then" || key === "toJSON" || key === "$$typeof") return undefined;
      return fail(module, `${member}.${key}`);
    },
  });
}

/** Stand-ins for many members, by name. */
export function allAbsent(module, members) {
  return Object.fromEntries(members.map((member) => [member, absent(module, member)]));
}
