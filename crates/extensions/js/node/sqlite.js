// node:sqlite: importable, so that code which may not need it loads; what is used says that it is not here.

import { missing, missingClass } from "pinion:node/internal_errors";

export const backup = missing("sqlite", "backup");
export const DatabaseSync = missingClass("sqlite", "DatabaseSync");
export const StatementSync = missingClass("sqlite", "StatementSync");
export const constants = {};
export default { backup, DatabaseSync, StatementSync, constants };
