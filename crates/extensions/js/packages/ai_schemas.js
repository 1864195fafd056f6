// Schemas of `pi-ai`.

import { Unsafe } from "pinion:packages/typebox_types";

/** Creates the schema of a string out of a fixed set, in the form that every provider accepts. */
export function StringEnum(values, options) {
  const schema = { type: "string", enum: values };
  if (options?.description) schema.description = options.description;
  if (options?.default) schema.default = options.default;
  return Unsafe(schema);
}
