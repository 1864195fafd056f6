// node:stream/promises

import { promises } from "pinion:node/stream";

export const { finished, pipeline } = promises;
export default promises;
