// Loads modules of the host when they are first used.
import { ops } from "pinion:ops";

const loaded = Object.create(null);

/** Returns the namespace of the built-in module at `place`. */
export function lazy(place) {
  return (loaded[place] ??= ops.core.load(`pinion:${place}`));
}
