// The tools that a session of the SDK starts with.

export const BUILT_IN = ["read", "bash", "edit", "write", "grep", "find", "ls"];
const DEFAULTS = ["read", "bash", "edit", "write"];

const matches = (pattern, name) => (pattern.includes("*")
  ? new RegExp(`^${pattern.split("*").map((part) => part.replace(/[.+?^${}()|[\]\\]/g, "\\$&")).join(".*")}$`).test(name) : pattern === name);
/** Reports whether one of the patterns matches. */
export const listed = (patterns, name) => patterns.some((pattern) => matches(pattern, name));

/** Returns the names that are active at the start, and those that the session may have at all. */
export function chooseTools(known, { tools, noTools, excludeTools = [] }, registered) {
  let active = [...DEFAULTS, ...registered];
  let permitted = known;
  const isChange = tools?.length > 0 && tools.every((name) => /^[+-]/.test(name));
  if (noTools === "all") active = [];
  else if (noTools === "builtin") active = [...registered];
  if (isChange) {
    active = [...active, ...tools.filter((name) => name.startsWith("+")).map((name) => name.slice(1))]
      .filter((name) => !tools.includes(`-${name}`));
  } else if (tools) {
    // In the order of the list, which is the order in which the model sees them.
    permitted = [...new Set(tools.flatMap((pattern) => known.filter((name) => matches(pattern, name))))];
    active = permitted;
  }
  const allowed = (name) => permitted.includes(name) && !listed(excludeTools, name);
  return { active: [...new Set(active)].filter(allowed), permitted: permitted.filter(allowed) };
}
