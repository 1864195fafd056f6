// Loads one file and runs its export; for running a script on its own.
import { ops } from "pinion:ops";

export async function run(path, ...args) {
  const module = await import(path);
  const entry = module.default;
  return typeof entry === "function" ? await entry(...args) : entry;
}

// Returns the names that a built-in module exports.
export function names(module) {
  return Object.keys(ops.core.load(module));
}
