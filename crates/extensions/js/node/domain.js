// node:domain: importable, so that code which may not need it loads; what is used says that it is not here.

import { missing, missingClass } from "pinion:node/internal_errors";

export const create = missing("domain", "create");
export const createDomain = missing("domain", "createDomain");
export const Domain = missingClass("domain", "Domain");
export default { create, createDomain, Domain };
