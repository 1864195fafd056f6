// node:repl: importable, so that code which may not need it loads; what is used says that it is not here.

import { missing, missingClass } from "pinion:node/internal_errors";

export const start = missing("repl", "start");
export const REPLServer = missingClass("repl", "REPLServer");
export const Recoverable = missingClass("repl", "Recoverable");
export default { start, REPLServer, Recoverable };
