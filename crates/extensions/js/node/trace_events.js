// node:trace_events: importable, so that code which may not need it loads; what is used says that it is not here.

import { missing } from "pinion:node/internal_errors";

export const createTracing = missing("trace_events", "createTracing");
export const getEnabledCategories = () => undefined;
export default { createTracing, getEnabledCategories };
