// node:vm: importable, so that code that may not need it loads; every use throws an error.

import { missing, missingClass } from "pinion:node/internal_errors";

export const runInContext = missing("vm", "runInContext");
export const runInNewContext = missing("vm", "runInNewContext");
export const compileFunction = missing("vm", "compileFunction");
export const createContext = missing("vm", "createContext");
export const measureMemory = missing("vm", "measureMemory");
export const SourceTextModule = missingClass("vm", "SourceTextModule");
export const SyntheticModule = missingClass("vm", "SyntheticModule");
export const isContext = () => false;
export const runInThisContext = (code) => (0, eval)(String(code));
export const Script = class Script { constructor(code) { this.code = String(code); } runInThisContext() { return runInThisContext(this.code); } runInContext() { return missing("vm", "Script.runInContext")(); } runInNewContext() { return missing("vm", "Script.runInNewContext")(); } };
export const constants = {};
export default { runInContext, runInNewContext, compileFunction, createContext, measureMemory, SourceTextModule, SyntheticModule, isContext, runInThisContext, Script, constants };
