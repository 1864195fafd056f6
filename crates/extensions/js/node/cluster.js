// node:cluster: importable, so that code that may not need it loads; every use throws an error.

import { missing, missingClass } from "pinion:node/internal_errors";

export const fork = missing("cluster", "fork");
export const setupPrimary = missing("cluster", "setupPrimary");
export const setupMaster = missing("cluster", "setupMaster");
export const disconnect = missing("cluster", "disconnect");
export const Worker = missingClass("cluster", "Worker");
export const isMaster = true;
export const isPrimary = true;
export const isWorker = false;
export const workers = {};
export const settings = {};
export const schedulingPolicy = 2;
export default { fork, setupPrimary, setupMaster, disconnect, Worker, isMaster, isPrimary, isWorker, workers, settings, schedulingPolicy };
