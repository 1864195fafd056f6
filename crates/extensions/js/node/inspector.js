// node:inspector: importable, so that code that may not need it loads; every use throws an error.

import { missing, missingClass } from "pinion:node/internal_errors";

export const open = missing("inspector", "open");
export const waitForDebugger = missing("inspector", "waitForDebugger");
export const Session = missingClass("inspector", "Session");
export const close = () => {};
export const url = () => undefined;
export const console = globalThis.console;
export default { open, waitForDebugger, Session, close, url, console };
