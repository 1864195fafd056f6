// node:inspector: importable, so that code which may not need it loads; what is used says that it is not here.

import { missing, missingClass } from "pinion:node/internal_errors";

export const open = missing("inspector", "open");
export const waitForDebugger = missing("inspector", "waitForDebugger");
export const Session = missingClass("inspector", "Session");
export const close = () => {};
export const url = () => undefined;
export const console = globalThis.console;
export default { open, waitForDebugger, Session, close, url, console };
