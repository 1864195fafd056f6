// Helpers around answers: incomplete JSON, prompts that are too long, diagnostics of failures.

import { ops } from "pinion:ops";

export const repairJson = (text) => ops.llm.repair(text);

export function parseJsonWithRepair(text) {
  try { return JSON.parse(text); } catch (error) {
    const repaired = repairJson(text);
    if (repaired === text) throw error;
    return JSON.parse(repaired);
  }
}

/** Parses the readable part of JSON that is still being written; always returns an object. */
export function parseStreamingJson(text) {
  if (!text || text.trim() === "") return {};
  try { return parseJsonWithRepair(text); } catch { return JSON.parse(ops.llm.parsePartial(text)) ?? {}; }
}

/** Parses the arguments of a tool call; text that is not a JSON object becomes an empty object and an error. */
export function parseToolCallArguments(text) {
  if (!text || text.trim() === "") return { arguments: {} };
  try {
    const value = parseJsonWithRepair(text);
    if (value !== null && typeof value === "object" && !Array.isArray(value)) return { arguments: value };
    return { arguments: {}, argumentsError: "The arguments are not a JSON object" };
  } catch (error) {
    return { arguments: {}, argumentsError: error.message };
  }
}

const OVERFLOW = [
  /prompt (is )?too long/i, /request_too_large/i, /input is too long for requested model/i, /exceeds the context window/i,
  /input token count.*exceeds the maximum/i, /maximum prompt length is \d+/i, /reduce the length of the messages/i,
  /maximum context length is \d+ tokens/i, /exceeds the limit of \d+/i, /exceeds the available context size/i,
  /greater than the context length/i, /context window exceed(s limit|ed)/i, /exceeded model token limit/i,
  /too large for model with \d+ maximum context length/i, /model_context_window_exceeded/i, /context[_ ]length[_ ]exceeded/i,
  /too many tokens/i, /token limit exceeded/i, /^4(00|13)\s*(status code)?\s*\(no body\)/i,
];
const RATE = /^(throttling error|service unavailable):|rate limit|too many requests/i;

export const getOverflowPatterns = () => [...OVERFLOW];

/** Share of the context window beyond which an empty answer means that the prompt was truncated. */
const FILLED = 0.99;

export function isContextOverflow(message, contextWindow) {
  const { stopReason, errorMessage, usage } = message;
  if (stopReason === "error" && errorMessage) {
    return !RATE.test(errorMessage) && OVERFLOW.some((pattern) => pattern.test(errorMessage));
  }
  if (!contextWindow || !usage) return false;
  const prompt = usage.input + (usage.cacheRead ?? 0);
  if (stopReason === "stop") return prompt > contextWindow;
  return stopReason === "length" && usage.output === 0 && prompt >= contextWindow * FILLED;
}

export function formatThrownValue(value) {
  return value instanceof Error ? value.message || value.name : String(value);
}
export function extractDiagnosticError(error) {
  if (!(error instanceof Error)) return { name: "ThrownValue", message: formatThrownValue(error) };
  const info = { name: error.name, message: error.message };
  if (error.stack) info.stack = error.stack;
  if (typeof error.code === "string" || typeof error.code === "number") info.code = error.code;
  return info;
}
export function createAssistantMessageDiagnostic(type, error, details) {
  const diagnostic = { type, timestamp: Date.now(), error: extractDiagnosticError(error) };
  return details === undefined ? diagnostic : { ...diagnostic, details };
}
export function appendAssistantMessageDiagnostic(message, diagnostic) {
  message.diagnostics = [...(message.diagnostics ?? []), diagnostic];
}

const cleanups = new Set();
export function registerSessionResourceCleanup(cleanup) {
  cleanups.add(cleanup);
  return () => cleanups.delete(cleanup);
}
/** Runs all cleanups, even if some fail, and throws the failures together at the end. */
export function cleanupSessionResources(sessionId) {
  const failures = [];
  for (const cleanup of cleanups) {
    try { cleanup(sessionId); } catch (error) { failures.push(error); }
  }
  if (failures.length > 0) throw new AggregateError(failures, "Failed to cleanup session resources");
}
