// node:dgram: importable, so that code which may not need it loads; what is used says that it is not here.

import { missing, missingClass } from "pinion:node/internal_errors";

export const createSocket = missing("dgram", "createSocket");
export const Socket = missingClass("dgram", "Socket");
export default { createSocket, Socket };
