// node:trace_events: importable, so that code that may not need it loads; every use throws an error.

import { missing } from "pinion:node/internal_errors";

export const createTracing = missing("trace_events", "createTracing");
export const getEnabledCategories = () => undefined;
export default { createTracing, getEnabledCategories };
