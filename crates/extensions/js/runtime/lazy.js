// Modules of the host that are loaded when something of them is first used.
import { ops } from "pinion:ops";

const loaded = Object.create(null);

/** The namespace of the built-in module at `place`. */
export function lazy(place) {
  return (loaded[place] ??= ops.core.load(`pinion:${place}`));
}
