// The events, and the answers that handlers may give to each.
//
// Each function takes the program's data and returns its answer; `undefined` means that nothing changed.

import { describe } from "pinion:api/errors";
import { each } from "pinion:api/handlers";
import { whole, withLater } from "pinion:api/program";
import { hasHandlers } from "pinion:api/registry";
import { lazy } from "pinion:runtime/lazy";

/** Returns a tool's output with every member that handlers may read. */
function fullOutput(output) {
  if (output && !("details" in output)) output.details = undefined;
  return output;
}

function fullMessage(message) {
  return message?.role === "toolResult" ? fullOutput(message) : message;
}

function fullEvent(event) {
  switch (event.type) {
    case "message_start":
      fullMessage(event.message);
      break;
    case "message_update":
      event.assistantMessageEvent.partial = event.message;
      break;
    case "turn_end":
      event.toolResults.forEach(fullMessage);
      break;
    case "agent_end":
      event.messages.forEach(fullMessage);
      break;
    case "tool_execution_update":
      fullOutput(event.partialResult);
      break;
    case "tool_execution_end":
      fullOutput(event.result);
      break;
    case "model_select":
      for (const model of [event.model, event.previousModel]) lazy("api/models").fullModel(model);
      break;
    default:
  }
}

/** Reports an event that handlers cannot change. */
export async function observe(work, event) {
  fullEvent(whole(event));
  await each(work, event.type, () => event);
}

/** Reports a complete message; a handler may replace it by another of the same role. */
export async function messageEnd(work, given) {
  const before = JSON.stringify(given);
  let message = fullMessage(given);
  await each(
    work,
    "message_end",
    () => ({ type: "message_end", message }),
    (result) => {
      if (!result?.message) return;
      if (result.message.role !== message.role) {
        throw new Error("message_end handlers must return a message with the same role");
      }
      message = result.message;
    },
  );
  return JSON.stringify(message) === before ? undefined : message;
}

/** Reports an input of the user or of an extension. */
export async function input(work, given) {
  const current = { text: given.text, images: given.images ?? undefined };
  let handled = false;
  await each(
    work,
    "input",
    () =>
      withLater(
        { type: "input", text: current.text, images: current.images, source: given.source },
        { streamingBehavior: given.streamingBehavior ?? undefined },
      ),
    (result) => {
      if (result?.action === "handled") return (handled = true);
      if (result?.action === "transform") {
        current.text = result.text;
        current.images = result.images ?? current.images;
      }
      return false;
    },
  );
  return { handled, ...current };
}

/** Characters of a command's output that are stored when the command ran elsewhere. */
const KEPT_OUTPUT = 50 * 1024;

/**
 * Reports a command of the user. A handler may answer it or run it elsewhere; a handler that fails prevents it from
 * running.
 */
export async function userBash(work, given) {
  let answer = {};
  let operations;
  const take = (result) => {
    if (result?.result) answer = { result: result.result };
    else operations = result?.operations;
    return Boolean(result?.result ?? operations);
  };
  take.failed = (error) => {
    answer = { error: describe(error) };
    return true;
  };
  await each(work, "user_bash", () => ({ type: "user_bash", ...given }), take);
  return operations ? runElsewhere(operations, given) : answer;
}

async function runElsewhere(operations, { command, cwd }) {
  const decoder = new TextDecoder();
  let output = "";
  let truncated = false;
  const onData = (data) => {
    output += typeof data === "string" ? data : decoder.decode(data, { stream: true });
    if (output.length <= KEPT_OUTPUT) return;
    output = output.slice(-KEPT_OUTPUT);
    truncated = true;
  };
  try {
    const { exitCode } = await operations.exec(command, cwd, { onData });
    return { result: { output, exitCode: exitCode ?? undefined, cancelled: false, truncated } };
  } catch (error) {
    return { error: describe(error) };
  }
}

/**
 * Reports a request that is about to be built for the model. Handlers of `context` see the conversation, those of
 * `context_with_system` also the system prompt in front of it.
 */
export async function context(work, { messages: given, systemPrompt }) {
  const conversation = given.filter((message) => message.role !== "system");
  const before = JSON.stringify(conversation);
  let messages = conversation;
  messages.forEach(fullMessage);
  await each(
    work,
    "context",
    () => ({ type: "context", messages }),
    (result) => {
      if (result?.messages) messages = result.messages;
    },
  );
  const prompt = await contextWithSystem(work, messages, systemPrompt);
  if (prompt) ({ messages } = prompt);
  return {
    messages: JSON.stringify(messages) === before ? undefined : messages,
    systemPrompt: prompt?.systemPrompt === systemPrompt ? undefined : prompt?.systemPrompt,
  };
}

async function contextWithSystem(work, conversation, systemPrompt) {
  const name = "context_with_system";
  if (!hasHandlers(name)) return undefined;
  let messages = [{ role: "system", content: systemPrompt, sections: {}, timestamp: Date.now() }, ...conversation];
  await each(
    work,
    name,
    () => ({ type: name, messages }),
    (result) => {
      if (!result?.messages) return;
      if (result.messages[0]?.role !== "system") {
        throw new Error("context_with_system handlers must keep a system message at the beginning");
      }
      messages = result.messages;
    },
  );
  const prompts = messages.filter((message) => message.role === "system").map(promptOf);
  return {
    messages: messages.filter((message) => message.role !== "system"),
    systemPrompt: prompts.filter((text) => text !== "").join("\n\n"),
  };
}

function promptOf({ content, sections }) {
  const text = typeof content === "string" ? content : (content ?? []).map((block) => block.text ?? "").join("\n");
  const parts = Object.entries(sections ?? {})
    .filter(([, section]) => typeof section === "string")
    .map(([name, section]) => (name === "preamble" ? section : `<${name}>\n${section}\n</${name}>`));
  return [text, ...parts].filter((part) => part !== "").join("\n\n");
}

/** Reports the headers of a request; handlers change them in place, and `null` removes a header. */
export async function headers(work, given) {
  await each(work, "before_provider_headers", () => ({ type: "before_provider_headers", headers: given }));
  const texts = Object.entries(given).filter(([, value]) => value !== undefined);
  return Object.fromEntries(texts.map(([name, value]) => [name, value === null ? null : String(value)]));
}

/** Reports a request that is about to be sent. */
export async function payload(work, given) {
  let current = given;
  await each(
    work,
    "before_provider_request",
    () => ({ type: "before_provider_request", payload: current }),
    (result) => {
      if (result !== undefined) current = result;
    },
  );
  return current;
}

/** Reports a tool call that is about to run; handlers may change its arguments in place, or block it. */
export async function toolCall(work, given) {
  const event = whole({ type: "tool_call", ...given });
  // Only changes in place count: another object is not the tool's arguments.
  const { input: called } = given;
  let verdict = {};
  const take = (result) => {
    if (!result?.block) return false;
    verdict = { block: true, reason: result.reason, terminate: result.terminate === true };
    return true;
  };
  take.failed = (error) => {
    verdict = { block: true, reason: describe(error) };
    return true;
  };
  await each(work, "tool_call", () => event, take);
  return { input: called, ...verdict };
}

/** Reports the result of a tool; handlers may change it. */
export async function toolResult(work, given) {
  const event = withLater(fullOutput(whole({ type: "tool_result", ...given })), { usage: given.usage });
  let changed = false;
  await each(
    work,
    "tool_result",
    () => event,
    (result) => {
      if (!result) return;
      // Structured content may not match other content.
      if (result.content !== undefined) delete event.structuredContent;
      for (const name of ["content", "details", "isError", "structuredContent"]) {
        if (result[name] === undefined) continue;
        event[name] = result[name];
        changed = true;
      }
    },
  );
  if (!changed) return undefined;
  const { content, details, isError, structuredContent } = event;
  return { content, details, isError, structuredContent };
}

const controllers = new Map();

/** Asks whether an operation may continue. The last answer counts, and the first refusal ends the round. */
export async function before(work, event, signalled) {
  fullQuestion(whole(event));
  if (signalled) {
    const controller = new AbortController();
    controllers.set(work, controller);
    event.signal = controller.signal;
  }
  let verdict;
  try {
    await each(
      work,
      event.type,
      () => event,
      (result) => {
        if (result) verdict = result;
        return Boolean(result?.cancel);
      },
    );
  } finally {
    controllers.delete(work);
  }
  return verdict;
}

/** Aborts the signal of the operation that `work` prepares. */
export function stopQuestion(work) {
  controllers.get(work)?.abort();
}

function fullQuestion(event) {
  if (event.type === "session_before_switch") event.targetSessionFile ??= undefined;
  if (event.type === "session_before_compact") {
    event.preparation.previousSummary ??= undefined;
    event.preparation.fileOps = sets(event.preparation.fileOps);
    event.customInstructions ??= undefined;
  }
}

// File names arrive as lists; handlers expect sets.
function sets(files) {
  return Object.fromEntries(Object.entries(files ?? {}).map(([name, list]) => [name, new Set(list)]));
}

/** Collects the skills, prompts and themes of extensions. */
export async function discover(work, event) {
  const found = { skillPaths: [], promptPaths: [], themePaths: [] };
  await each(
    work,
    "resources_discover",
    () => event,
    (result, extension) => {
      for (const name of Object.keys(found)) {
        for (const path of result?.[name] ?? []) found[name].push({ path, extension: extension.path });
      }
    },
  );
  return found;
}

