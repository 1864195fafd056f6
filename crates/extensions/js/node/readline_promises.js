// node:readline/promises

import { promises } from "pinion:node/readline";

export const { Interface, createInterface } = promises;
export default promises;
