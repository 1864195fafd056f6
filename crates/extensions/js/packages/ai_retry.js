// Failures of a model request that are worth another attempt.

export const DEFAULT_MAX_AGENT_RETRY_DELAY_MS = 60000;

/** Limits of an account or a plan, which do not pass within seconds. */
const EXHAUSTED = /UsageLimitError|usage limit reached|usage_limit_exceeded|individual_usage_limit|available balance|insufficient_quota|out of budget|quota exceeded|billing/i;
const TRANSIENT = new RegExp([
  "overloaded", "busy", "high demand", "at capacity", "rate.?limit", "too many requests", "(?<![a-z0-9])(?:429|500|502|503|504|520|524)(?![a-z0-9])",
  "unavailable", "server.?error", "internal.?error", "provider.?returned.?(?:an.?)?error", "upstream", "stream was interrupted",
  "stream failed", "network.?error", "connection.?(?:error|refused|lost)", "other side closed", "fetch failed", "request to \\S+ failed, reason:",
  "getaddrinfo", "ENOTFOUND", "EAI_AGAIN", "ECONNRE", "reset before headers", "socket", "timed? ?out", "terminated", "ended (?:without|before)",
  "did not get a response", "stream disconnected", "has been canceled", "retry (?:delay|your request)", "try your request again", "ResourceExhausted",
].join("|"), "i");

export function isRetryableAssistantError({ stopReason, errorMessage }) {
  return stopReason === "error" && Boolean(errorMessage) && !EXHAUSTED.test(errorMessage) && TRANSIENT.test(errorMessage);
}

export function retryDelayMs({ baseDelayMs, maxAgentDelayMs = DEFAULT_MAX_AGENT_RETRY_DELAY_MS }, attempt) {
  return Math.min(baseDelayMs * 2 ** Math.max(0, attempt - 1), maxAgentDelayMs);
}

const pause = (milliseconds, signal) => new Promise((resolve) => {
  const timer = setTimeout(() => { signal?.removeEventListener("abort", stop); resolve(true); }, milliseconds);
  const stop = () => { clearTimeout(timer); resolve(false); };
  if (signal?.aborted) stop(); else signal?.addEventListener("abort", stop, { once: true });
});

/** Requests an answer, and again after a transient failure. */
export async function retryAssistantCall(produce, policy, signal, callbacks = {}) {
  let message = await produce();
  if (!policy?.enabled) return message;
  let attempt = 0;
  while (isRetryableAssistantError(message) && attempt < policy.maxRetries) {
    attempt += 1;
    const delay = retryDelayMs(policy, attempt);
    await callbacks.onRetryScheduled?.(attempt, policy.maxRetries, delay, message.errorMessage);
    if (!await pause(delay, signal)) {
      message = { ...message, stopReason: "aborted", errorMessage: "Retry cancelled" };
      break;
    }
    await callbacks.onRetryAttemptStart?.();
    message = await produce();
  }
  if (attempt > 0) {
    const failed = message.stopReason === "error" || message.stopReason === "aborted";
    await callbacks.onRetryFinished?.(!failed, attempt, failed ? message.errorMessage : undefined);
  }
  return message;
}

/** Reports whether an answer was cut although it is shorter than the wanted output. */
export const isRecoverableLength = ({ stopReason, usage }, wanted) => stopReason === "length" && wanted > 0 && usage.output < wanted;
