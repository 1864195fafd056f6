// node:worker_threads: importable, so that code that may not need it loads; every use throws an error.

import { missing, missingClass } from "pinion:node/internal_errors";

export const receiveMessageOnPort = missing("worker_threads", "receiveMessageOnPort");
export const moveMessagePortToContext = missing("worker_threads", "moveMessagePortToContext");
export const Worker = missingClass("worker_threads", "Worker");
export const MessagePort = missingClass("worker_threads", "MessagePort");
export const isMainThread = true;
export const parentPort = null;
export const workerData = null;
export const threadId = 0;
export const resourceLimits = {};
export const SHARE_ENV = Symbol.for("nodejs.worker_threads.SHARE_ENV");
export const MessageChannel = globalThis.MessageChannel ?? missingClass("worker_threads", "MessageChannel");
export const BroadcastChannel = globalThis.BroadcastChannel ?? missingClass("worker_threads", "BroadcastChannel");
export const markAsUntransferable = () => {};
export const setEnvironmentData = () => {};
export const getEnvironmentData = () => undefined;
export default { receiveMessageOnPort, moveMessagePortToContext, Worker, MessagePort, isMainThread, parentPort, workerData, threadId, resourceLimits, SHARE_ENV, MessageChannel, BroadcastChannel, markAsUntransferable, setEnvironmentData, getEnvironmentData };
