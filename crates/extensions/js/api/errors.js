// Error messages in the words of other engines.

import { ops } from "pinion:ops";

/** Returns the text of a thrown value. */
export function describe(thrown) {
  return ops.core.message(thrown);
}
