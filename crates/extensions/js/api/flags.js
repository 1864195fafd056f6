// Command-line flags of extensions.

const values = new Map();

/** Sets the values of the command line; they override defaults. */
export function setFlagValues(given) {
  for (const [name, value] of Object.entries(given ?? {})) values.set(name, value);
}

/** Registers a flag and its default. */
export function registerFlag(extension, name, options = {}) {
  extension.flags.set(name, { ...options });
}

/** Returns the value of a flag that this extension registered. */
export function getFlag(extension, name) {
  const flag = extension.flags.get(name);
  if (!flag) return undefined;
  return values.has(name) ? values.get(name) : flag.default;
}
