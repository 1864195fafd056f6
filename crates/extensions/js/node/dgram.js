// node:dgram: importable, so that code that may not need it loads; every use throws an error.

import { missing, missingClass } from "pinion:node/internal_errors";

export const createSocket = missing("dgram", "createSocket");
export const Socket = missingClass("dgram", "Socket");
export default { createSocket, Socket };
