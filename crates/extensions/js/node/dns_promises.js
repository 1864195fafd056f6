// node:dns/promises

import { promises } from "pinion:node/dns";

export const { lookup, resolve, resolve4, resolve6, reverse, resolveTxt, resolveMx, resolveSrv, setServers, getServers } = promises;
export default promises;
