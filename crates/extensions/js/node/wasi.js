// node:wasi: importable, so that code which may not need it loads; what is used says that it is not here.

import { missingClass } from "pinion:node/internal_errors";

export const WASI = missingClass("wasi", "WASI");
export default { WASI };
