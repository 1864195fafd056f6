// node:repl: importable, so that code that may not need it loads; every use throws an error.

import { missing, missingClass } from "pinion:node/internal_errors";

export const start = missing("repl", "start");
export const REPLServer = missingClass("repl", "REPLServer");
export const Recoverable = missingClass("repl", "Recoverable");
export default { start, REPLServer, Recoverable };
