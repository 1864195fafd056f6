// Arguments of tool calls: converted, checked, and reported in messages for the model.

import { errorsOf, isValid } from "pinion:packages/schema_check";
import { coerce, convert } from "pinion:packages/schema_convert";
import { kindOf } from "pinion:packages/typebox_schema";

function subject({ keyword, instancePath, params }) {
  const path = instancePath.slice(1).replaceAll("/", ".");
  if (keyword !== "required") return path || "root";
  return path ? `${path}.${params.requiredProperties[0]}` : params.requiredProperties[0];
}

/** Returns the arguments in the form that the tool accepts; throws a message for the model. */
export function validateToolArguments(tool, toolCall) {
  const schema = tool.parameters;
  const copy = toolCall.arguments === undefined ? undefined : JSON.parse(JSON.stringify(toolCall.arguments));
  const bent = kindOf(schema) === undefined ? coerce(schema, copy) : convert(schema, copy);
  if (isValid(schema, bent)) return bent;
  const lines = errorsOf(schema, bent).map((error) => `  - ${subject(error)}: ${error.message}`);
  const received = JSON.stringify(toolCall.arguments, null, 2);
  throw new Error(`Validation failed for tool "${toolCall.name}":\n${lines.join("\n") || "Unknown validation error"}\n\nReceived arguments:\n${received}`);
}

export function validateToolCall(tools, toolCall) {
  const tool = tools.find(({ name }) => name === toolCall.name);
  if (!tool) throw new Error(`Tool "${toolCall.name}" not found`);
  return validateToolArguments(tool, toolCall);
}
