// node:domain: importable, so that code that may not need it loads; every use throws an error.

import { missing, missingClass } from "pinion:node/internal_errors";

export const create = missing("domain", "create");
export const createDomain = missing("domain", "createDomain");
export const Domain = missingClass("domain", "Domain");
export default { create, createDomain, Domain };
