// node:wasi: importable, so that code that may not need it loads; every use throws an error.

import { missingClass } from "pinion:node/internal_errors";

export const WASI = missingClass("wasi", "WASI");
export default { WASI };
