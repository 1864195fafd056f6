// `pi-agent-core`: a small agent loop on top of a model stream, for extensions that run their own.

import { absent } from "pinion:packages/absent";
import { EventStream } from "pinion:packages/ai_events";
import { streamSimple } from "pinion:packages/ai_stream";
import { validateToolArguments } from "pinion:packages/ai_validation";

const failed = (text) => ({ content: [{ type: "text", text }], details: {} });
const words = (error) => (error instanceof Error ? error.message : String(error));

/** Requests one answer of the model and reports it while it is streamed. */
async function answer(context, config, emit, signal, streamFn) {
  const { model, convertToLlm, transformContext, getApiKey, ...options } = config;
  const given = transformContext ? await transformContext(context.messages, signal) : context.messages;
  const request = { systemPrompt: context.systemPrompt, messages: await convertToLlm(given), tools: context.tools };
  const apiKey = (await getApiKey?.(model.provider)) || config.apiKey;
  const stream = await (streamFn ?? defaultStream)(model, request, { ...options, apiKey, signal });
  let started = false;
  for await (const event of stream) {
    if (event.type === "start") {
      started = true;
      await emit({ type: "message_start", message: { ...event.partial } });
    } else if (event.type !== "done" && event.type !== "error") {
      await emit({ type: "message_update", assistantMessageEvent: event, message: { ...event.partial } });
    }
  }
  const message = await stream.result();
  context.messages.push(message);
  if (!started) await emit({ type: "message_start", message: { ...message } });
  await emit({ type: "message_end", message });
  return message;
}

/** Runs one call with checks before and after it. Never throws. */
async function run(toolCall, assistantMessage, context, config, emit, signal) {
  const { id: toolCallId, name: toolName } = toolCall;
  const finish = (result, isError) => ({ toolCall, result, isError });
  const tool = context.tools?.find(({ name }) => name === toolName);
  if (!tool) return finish(failed(`Tool ${toolName} not found`), true);
  try {
    const prepared = tool.prepareArguments ? { ...toolCall, arguments: tool.prepareArguments(toolCall.arguments) } : toolCall;
    const args = validateToolArguments(tool, prepared);
    const verdict = await config.beforeToolCall?.({ assistantMessage, toolCall, args, context }, signal);
    if (verdict?.block) return finish(failed(verdict.reason || "Tool execution was blocked"), true);
    const update = (partialResult) => emit({ type: "tool_execution_update", toolCallId, toolName, args: toolCall.arguments, partialResult });
    let result;
    let isError = false;
    try { result = await tool.execute(toolCallId, args, signal, update); } catch (error) { result = failed(words(error)); isError = true; }
    const change = await config.afterToolCall?.({ assistantMessage, toolCall, args, result, isError, context }, signal);
    return finish({ ...result, ...pick(change, ["content", "details", "terminate"]) }, change?.isError ?? isError);
  } catch (error) {
    return finish(failed(words(error)), true);
  }
}
const pick = (from, names) => Object.fromEntries(names.filter((name) => from?.[name] !== undefined).map((name) => [name, from[name]]));

async function runAll(calls, message, context, config, emit, signal) {
  const isSequential = config.toolExecution === "sequential" || calls.some(({ name }) => context.tools?.find((tool) => tool.name === name)?.executionMode === "sequential");
  const one = async (toolCall) => {
    const finished = await run(toolCall, message, context, config, emit, signal);
    await emit({ type: "tool_execution_end", toolCallId: toolCall.id, toolName: toolCall.name, result: finished.result, isError: finished.isError });
    return finished;
  };
  const start = (call) => emit({ type: "tool_execution_start", toolCallId: call.id, toolName: call.name, args: call.arguments });
  const told = async ({ toolCall, result, isError }) => {
    const toolResult = { role: "toolResult", toolCallId: toolCall.id, toolName: toolCall.name, content: result.content, details: result.details, isError, timestamp: Date.now() };
    await emit({ type: "message_start", message: toolResult });
    await emit({ type: "message_end", message: toolResult });
    return toolResult;
  };
  const finished = [];
  const results = [];
  if (isSequential) {
    for (const call of calls) { await start(call); finished.push(await one(call)); results.push(await told(finished.at(-1))); }
  } else {
    const running = [];
    for (const call of calls) { await start(call); running.push(one(call)); }
    finished.push(...await Promise.all(running));
    for (const end of finished) results.push(await told(end));
  }
  return { results, terminate: finished.length > 0 && finished.every(({ result }) => result.terminate === true) };
}

async function loop(context, config, added, emit, signal, streamFn, isFirst) {
  let pending = (await config.getSteeringMessages?.()) ?? [];
  let first = isFirst;
  for (;;) {
    for (let more = true; more || pending.length > 0;) {
      if (!first) await emit({ type: "turn_start" });
      first = false;
      for (const message of pending.splice(0)) {
        await emit({ type: "message_start", message });
        await emit({ type: "message_end", message });
        context.messages.push(message);
        added.push(message);
      }
      const message = await answer(context, config, emit, signal, streamFn);
      added.push(message);
      const ended = message.stopReason === "error" || message.stopReason === "aborted";
      const calls = ended ? [] : message.content.filter(({ type }) => type === "toolCall");
      const { results, terminate } = await runAll(calls, message, context, config, emit, signal);
      context.messages.push(...results);
      added.push(...results);
      await emit({ type: "turn_end", message, toolResults: results });
      const stop = ended || (await config.shouldStopAfterTurn?.({ message, toolResults: results, context, newMessages: added }));
      if (stop) return;
      more = calls.length > 0 && !terminate;
      pending = (await config.getSteeringMessages?.()) ?? [];
    }
    pending = (await config.getFollowUpMessages?.()) ?? [];
    if (pending.length === 0) return;
  }
}

export async function runAgentLoop(prompts, context, config, emit, signal, streamFn) {
  const added = [...prompts];
  const current = { ...context, messages: [...context.messages, ...prompts] };
  await emit({ type: "agent_start" });
  await emit({ type: "turn_start" });
  for (const message of prompts) {
    await emit({ type: "message_start", message });
    await emit({ type: "message_end", message });
  }
  await loop(current, config, added, emit, signal, streamFn, true);
  await emit({ type: "agent_end", messages: added });
  return added;
}

export async function runAgentLoopContinue(context, config, emit, signal, streamFn) {
  if (context.messages.length === 0) throw new Error("Cannot continue: no messages in context");
  if (context.messages.at(-1).role === "assistant") throw new Error("Cannot continue from message role: assistant");
  const added = [];
  await emit({ type: "agent_start" });
  await emit({ type: "turn_start" });
  await loop({ ...context, messages: [...context.messages] }, config, added, emit, signal, streamFn, true);
  await emit({ type: "agent_end", messages: added });
  return added;
}

function streamed(work) {
  const stream = new EventStream(({ type }) => type === "agent_end", ({ messages }) => messages);
  work((event) => stream.push(event)).then((messages) => stream.end(messages), () => stream.end([]));
  return stream;
}
export const agentLoop = (prompts, context, config, signal, streamFn) => streamed((emit) => runAgentLoop(prompts, context, config, emit, signal, streamFn));
export const agentLoopContinue = (context, config, signal, streamFn) => streamed((emit) => runAgentLoopContinue(context, config, emit, signal, streamFn));

let defaultStream = streamSimple;
/** Sets the function through which agents without one of their own send requests. */
export function setDefaultStreamFn(streamFn) { defaultStream = streamFn; }

const ROLES = ["user", "assistant", "toolResult"];
const NO_MODEL = { id: "unknown", name: "unknown", api: "unknown", provider: "unknown", baseUrl: "", reasoning: false, input: [], cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }, contextWindow: 0, maxTokens: 0 };

/** A conversation that can be prompted, steered and aborted. */
export class Agent {
  #listeners = new Set(); #steering = []; #following = []; #run;

  constructor(options = {}) {
    const { initialState = {}, ...rest } = options;
    this.state = { systemPrompt: "", model: NO_MODEL, thinkingLevel: "off", tools: [], messages: [], ...initialState, isStreaming: false, streamingMessage: undefined, pendingToolCalls: new Set(), errorMessage: undefined };
    this.convertToLlm = (messages) => messages.filter(({ role }) => ROLES.includes(role));
    this.streamFn = (...given) => defaultStream(...given);
    Object.assign(this, { steeringMode: "one-at-a-time", followUpMode: "one-at-a-time", toolExecution: "parallel", transport: "auto" }, rest);
  }

  subscribe(listener) { this.#listeners.add(listener); return () => this.#listeners.delete(listener); }
  steer(message) { this.#steering.push(message); }
  followUp(message) { this.#following.push(message); }
  clearSteeringQueue() { this.#steering = []; }
  clearFollowUpQueue() { this.#following = []; }
  clearAllQueues() { this.clearSteeringQueue(); this.clearFollowUpQueue(); }
  hasQueuedMessages() { return this.#steering.length > 0 || this.#following.length > 0; }
  get signal() { return this.#run?.controller.signal; }
  abort() { this.#run?.controller.abort(); }
  async waitForIdle() { await this.#run?.done; }
  reset() {
    Object.assign(this.state, { messages: [], isStreaming: false, streamingMessage: undefined, pendingToolCalls: new Set(), errorMessage: undefined });
    this.clearAllQueues();
  }

  async prompt(input, images = []) {
    if (this.#run) throw new Error("Agent is already processing a prompt. Use steer() or followUp() to queue messages, or wait for completion.");
    const prompts = typeof input === "string" ? [{ role: "user", content: [{ type: "text", text: input }, ...images], timestamp: Date.now() }] : [input].flat();
    await this.#start((context, config, emit, signal) => runAgentLoop(prompts, context, config, emit, signal, this.streamFn));
  }
  async continue() {
    if (this.#run) throw new Error("Agent is already processing. Wait for completion before continuing.");
    if (this.state.messages.length === 0) throw new Error("No messages to continue from");
    if (this.state.messages.at(-1).role === "assistant") {
      const queued = this.#take("steering").concat(this.#take("following"));
      if (queued.length === 0) throw new Error("Cannot continue from message role: assistant");
      await this.prompt(queued);
      return;
    }
    await this.#start((context, config, emit, signal) => runAgentLoopContinue(context, config, emit, signal, this.streamFn));
  }

  #take(which) {
    const queue = which === "steering" ? this.#steering : this.#following;
    const mode = which === "steering" ? this.steeringMode : this.followUpMode;
    return queue.splice(0, mode === "all" ? queue.length : 1);
  }

  async #start(work) {
    const controller = new AbortController();
    const { promise, resolve } = Promise.withResolvers();
    this.#run = { controller, done: promise };
    Object.assign(this.state, { isStreaming: true, streamingMessage: undefined, errorMessage: undefined });
    const { systemPrompt, messages, tools, model, thinkingLevel } = this.state;
    const config = {
      model, reasoning: thinkingLevel === "off" ? undefined : thinkingLevel, sessionId: this.sessionId, thinkingBudgets: this.thinkingBudgets,
      transport: this.transport, maxRetryDelayMs: this.maxRetryDelayMs, toolExecution: this.toolExecution, onPayload: this.onPayload, onResponse: this.onResponse,
      convertToLlm: this.convertToLlm, transformContext: this.transformContext, getApiKey: this.getApiKey, beforeToolCall: this.beforeToolCall,
      afterToolCall: this.afterToolCall, getSteeringMessages: async () => this.#take("steering"), getFollowUpMessages: async () => this.#take("following"),
    };
    const emit = (event) => this.#note(event, controller.signal);
    try {
      await work({ systemPrompt, messages: [...messages], tools }, config, emit, controller.signal);
    } catch (error) {
      const stopReason = controller.signal.aborted ? "aborted" : "error";
      const usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0, cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 } };
      const message = { role: "assistant", content: [{ type: "text", text: "" }], api: model.api, provider: model.provider, model: model.id, usage, stopReason, errorMessage: words(error), timestamp: Date.now() };
      this.state.messages.push(message);
      this.state.errorMessage = message.errorMessage;
      await emit({ type: "agent_end", messages: [message] });
    } finally {
      Object.assign(this.state, { isStreaming: false, streamingMessage: undefined, pendingToolCalls: new Set() });
      this.#run = undefined;
      resolve();
    }
  }

  async #note(event, signal) {
    const { state } = this;
    if (event.type === "message_start" || event.type === "message_update") state.streamingMessage = event.message;
    else if (event.type === "message_end") { state.streamingMessage = undefined; state.messages.push(event.message); }
    else if (event.type === "tool_execution_start") state.pendingToolCalls = new Set([...state.pendingToolCalls, event.toolCallId]);
    else if (event.type === "tool_execution_end") state.pendingToolCalls = new Set([...state.pendingToolCalls].filter((id) => id !== event.toolCallId));
    else if (event.type === "turn_end" && event.message.errorMessage) state.errorMessage = event.message.errorMessage;
    else if (event.type === "agent_end") state.streamingMessage = undefined;
    for (const listener of this.#listeners) await listener(event, signal);
  }
}

export const streamProxy = absent("pi-agent-core", "streamProxy");

/** Names of later releases, which share the implementations of the other packages. */
export { uuidv7 } from "pinion:packages/ai_utils";
export {
  DEFAULT_MAX_BYTES, DEFAULT_MAX_LINES, formatSize, truncateHead, truncateLine, truncateTail,
} from "pinion:packages/coding_text";
export { convertToLlm, serializeConversation } from "pinion:packages/coding_messages";
export {
  DEFAULT_COMPACTION_SETTINGS, calculateContextTokens, collectEntriesForBranchSummary, compact, estimateTokens, findCutPoint,
  findTurnStartIndex, generateBranchSummary, generateSummary, getLastAssistantUsage, prepareBranchEntries, shouldCompact,
} from "pinion:packages/coding_compaction";
export { createBashTool, createEditTool, createReadTool, createWriteTool } from "pinion:packages/coding_tools";
export { loadSkills } from "pinion:packages/coding_skills";
export const ok = (value) => ({ ok: true, value });
export const err = (error) => ({ ok: false, error });
export const toError = (value) => (value instanceof Error ? value : new Error(String(value)));
export function getOrThrow(result) { if (!result.ok) throw toError(result.error); return result.value; }
export const getOrUndefined = (result) => (result.ok ? result.value : undefined);
export const DEFAULT_AGENT_IDENTITY = { attribution: { name: "pi", url: "https://pi.dev", categories: ["cli-agent"] } };
