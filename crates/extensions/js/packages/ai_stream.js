// Requests to models: the handler of each api, and the bridge to the program's own providers.

import { ops } from "pinion:ops";
import { AssistantMessageEventStream, emptyAnswer, failWith } from "pinion:packages/ai_events";
import { getCurrentSystemPrompt, getCurrentTools } from "pinion:packages/ai_transcript";

const NATIVE_APIS = [
  "anthropic-messages", "openai-completions", "mistral-conversations", "openai-responses", "azure-openai-responses",
  "openai-codex-responses", "google-generative-ai", "google-vertex", "bedrock-converse-stream", "offline",
];

/** Returns the thinking level in a provider's own options. */
function reasoningOf(options) {
  if (options.reasoning !== undefined) return options.reasoning;
  if (options.reasoningEffort !== undefined) return options.reasoningEffort;
  if (options.effort !== undefined) return options.effort === "max" ? "xhigh" : options.effort;
  const thinking = options.thinking ?? {};
  if (options.thinkingEnabled || thinking.enabled) return thinking.level?.toLowerCase() ?? "medium";
  return undefined;
}

/** Moves the prompt and the tools of system messages to where the program's requests have them. */
function withoutSystemMessages({ systemPrompt, tools = [], messages = [] }) {
  if (!messages.some(({ role }) => role === "system")) return { systemPrompt, tools, messages };
  const prompts = [systemPrompt, getCurrentSystemPrompt(messages)].filter(Boolean);
  return {
    systemPrompt: prompts.length > 0 ? prompts.join("\n\n") : undefined,
    tools: [...tools, ...getCurrentTools(messages)],
    messages: messages.filter(({ role }) => role !== "system"),
  };
}

function requestOf(model, given, options) {
  const context = withoutSystemMessages(given);
  const tools = context.tools.map(({ name, description, parameters }) => ({ name, description, parameters }));
  const budget = options.thinkingBudgetTokens ?? options.thinking?.budgetTokens;
  const reasoning = reasoningOf(options);
  return {
    watch: { payload: typeof options.onPayload === "function", response: typeof options.onResponse === "function" },
    model, systemPrompt: context.systemPrompt, messages: context.messages, tools,
    options: {
      apiKey: options.apiKey, headers: options.headers, reasoning, sessionId: options.sessionId,
      cacheRetention: options.cacheRetention, maxTokens: options.maxTokens, temperature: options.temperature,
      thinkingBudgets: options.thinkingBudgets ?? (budget > 0 && reasoning ? { [reasoning]: budget } : undefined),
      toolChoice: options.toolChoice, userId: options.metadata?.user_id, timeoutMs: options.timeoutMs,
      maxRetries: options.maxRetries, maxRetryDelayMs: options.maxRetryDelayMs,
    },
  };
}

const WORDS = { text: "text", thinking: "thinking", toolCall: "toolcall" };

/** Converts the program's events to those of pi, around one partial message. */
class Answer {
  constructor(model, stream) {
    this.stream = stream;
    this.partial = emptyAnswer(model);
    this.raw = new Map();
  }

  push(type, members) {
    this.stream.push({ type, ...members, partial: this.partial });
  }

  take(event) {
    const { index } = event;
    switch (event.type) {
      case "start":
        Object.assign(this.partial, event.message);
        return this.push("start", {});
      case "blockStart":
        this.partial.content[index] = event.block;
        return this.push(`${WORDS[event.block.type]}_start`, { contentIndex: index });
      case "delta":
        return this.grow(index, event.delta);
      case "blockEnd":
        return this.finish(index, event.block);
      case "usage":
        this.partial.usage = event.usage;
        return undefined;
      default:
        return this.end(event.message);
    }
  }

  grow(contentIndex, delta) {
    const block = this.partial.content[contentIndex];
    if (block.type === "text") block.text += delta;
    else if (block.type === "thinking") block.thinking += delta;
    else {
      const raw = (this.raw.get(contentIndex) ?? "") + delta;
      this.raw.set(contentIndex, raw);
      block.arguments = JSON.parse(ops.llm.parsePartial(raw));
    }
    this.push(`${WORDS[block.type]}_delta`, { contentIndex, delta });
  }

  finish(contentIndex, block) {
    Object.assign(this.partial.content[contentIndex], block);
    const ended = this.partial.content[contentIndex];
    if (ended.type === "toolCall") this.push("toolcall_end", { contentIndex, toolCall: ended });
    else this.push(`${WORDS[ended.type]}_end`, { contentIndex, content: ended.type === "text" ? ended.text : ended.thinking });
  }

  end(message) {
    const reason = message.stopReason;
    const failed = reason === "error" || reason === "aborted";
    this.stream.push(failed ? { type: "error", reason, error: message } : { type: "done", reason, message });
  }
}

/** Shows the exchange to a script; returns the changed body, if the script changed it. */
async function shown(event, model, { onPayload, onResponse }) {
  if (event.type === "response") {
    await onResponse({ status: event.status, headers: event.headers }, model);
    return undefined;
  }
  const changed = await onPayload(event.payload, model);
  return changed === undefined ? undefined : JSON.stringify(changed);
}

async function drive(model, context, options, stream) {
  const { signal } = options;
  const id = ops.llm.start(JSON.stringify(requestOf(model, context, options)));
  const cancel = () => ops.llm.cancel(id);
  if (signal?.aborted) cancel();
  signal?.addEventListener("abort", cancel);
  const answer = new Answer(model, stream);
  try {
    for (let batch = await ops.llm.next(id); batch !== undefined; batch = await ops.llm.next(id)) {
      for (const event of JSON.parse(batch)) {
        if (event.question === undefined) answer.take(event);
        else ops.llm.reply(id, event.question, await shown(event, model, options));
      }
    }
  } finally {
    signal?.removeEventListener("abort", cancel);
    ops.llm.finish(id);
  }
}

/** Sends a request through the program's own providers. */
export function nativeStream(model, context, options = {}) {
  const stream = new AssistantMessageEventStream();
  drive(model, context, options, stream).then(
    () => stream.end(),
    (error) => { failWith(stream, model, error, options.signal); stream.end(); },
  );
  return stream;
}

const providers = new Map();
const builtIn = (api) => ({ api, stream: nativeStream, streamSimple: nativeStream });

/** Wraps a handler so that it throws for a model of another api. */
function checked(api, answer) {
  return (model, context, options) => {
    if (model.api !== api) throw new Error(`Mismatched api: ${model.api} expected ${api}`);
    return answer(model, context, options);
  };
}

export function registerApiProvider(provider, sourceId) {
  const { api, stream, streamSimple } = provider;
  providers.set(api, { sourceId, provider: { api, stream: checked(api, stream), streamSimple: checked(api, streamSimple) } });
}
export const getApiProvider = (api) => providers.get(api)?.provider;
export const getApiProviders = () => [...providers.values()].map(({ provider }) => provider);
export function unregisterApiProviders(sourceId) {
  for (const [api, entry] of providers) if (entry.sourceId === sourceId) providers.delete(api);
}
export const clearApiProviders = () => providers.clear();
export function registerBuiltInApiProviders() {
  for (const api of NATIVE_APIS) providers.set(api, { provider: builtIn(api) });
}
export function resetApiProviders() {
  clearApiProviders();
  registerBuiltInApiProviders();
}
registerBuiltInApiProviders();

function answering(model) {
  const provider = getApiProvider(model.api);
  if (provider) return provider;
  // An extension may have registered a provider of this api; then the program has a model of it.
  if (JSON.parse(ops.llm.allModels()).some(({ api }) => api === model.api)) return builtIn(model.api);
  throw new Error(`No API provider registered for api: ${model.api}`);
}

export const stream = (model, context, options) => answering(model).stream(model, context, options);
export const streamSimple = (model, context, options) => answering(model).streamSimple(model, context, options);
export const complete = async (model, context, options) => stream(model, context, options).result();
export const completeSimple = async (model, context, options) => streamSimple(model, context, options).result();

export const streamAnthropic = (model, context, options) => nativeStream(model, context, options);
export const streamSimpleAnthropic = (model, context, options) => nativeStream(model, context, options);
export const streamAzureOpenAIResponses = (model, context, options) => nativeStream(model, context, options);
export const streamSimpleAzureOpenAIResponses = (model, context, options) => nativeStream(model, context, options);
export const streamGoogle = (model, context, options) => nativeStream(model, context, options);
export const streamSimpleGoogle = (model, context, options) => nativeStream(model, context, options);
export const streamGoogleVertex = (model, context, options) => nativeStream(model, context, options);
export const streamSimpleGoogleVertex = (model, context, options) => nativeStream(model, context, options);
export const streamMistral = (model, context, options) => nativeStream(model, context, options);
export const streamSimpleMistral = (model, context, options) => nativeStream(model, context, options);
export const streamOpenAICodexResponses = (model, context, options) => nativeStream(model, context, options);
export const streamSimpleOpenAICodexResponses = (model, context, options) => nativeStream(model, context, options);
export const streamOpenAICompletions = (model, context, options) => nativeStream(model, context, options);
export const streamSimpleOpenAICompletions = (model, context, options) => nativeStream(model, context, options);
export const streamOpenAIResponses = (model, context, options) => nativeStream(model, context, options);
export const streamSimpleOpenAIResponses = (model, context, options) => nativeStream(model, context, options);

/** Sends requests to Bedrock through the functions of `module`. */
export function setBedrockProviderModule(module) {
  registerApiProvider({ api: "bedrock-converse-stream", stream: module.streamBedrock, streamSimple: module.streamSimpleBedrock });
}
