// Command-line flags of extensions.

const values = new Map();

/** Takes the values of the command line; they win over defaults. */
export function setFlagValues(given) {
  for (const [name, value] of Object.entries(given ?? {})) values.set(name, value);
}

/** Remembers a flag and its default. */
export function registerFlag(extension, name, options = {}) {
  extension.flags.set(name, { ...options });
}

/** The value of a flag this very extension registered. */
export function getFlag(extension, name) {
  const flag = extension.flags.get(name);
  if (!flag) return undefined;
  return values.has(name) ? values.get(name) : flag.default;
}
