// node:sqlite: importable, so that code that may not need it loads; every use throws an error.

import { missing, missingClass } from "pinion:node/internal_errors";

export const backup = missing("sqlite", "backup");
export const DatabaseSync = missingClass("sqlite", "DatabaseSync");
export const StatementSync = missingClass("sqlite", "StatementSync");
export const constants = {};
export default { backup, DatabaseSync, StatementSync, constants };
