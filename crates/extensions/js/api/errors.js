// Words for what went wrong, as people know them from other engines.

import { ops } from "pinion:ops";

/** The text of whatever was thrown. */
export function describe(thrown) {
  return ops.core.message(thrown);
}
