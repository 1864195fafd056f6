// A session that a script started in the program; `sdk_create` starts it.
//
// The conversation runs in the program's engine, with its tools and its guards. This object follows its events, runs the
// tools and handlers that the script defined for it, and stores its messages in the script's session manager.

import { ops } from "pinion:ops";
import { home, later, now } from "pinion:api/bridge";
import { getSupportedThinkingLevels } from "pinion:packages/ai_models";
import { formatSkillsForPrompt } from "pinion:packages/coding_skills";
import { isProjectTrusted } from "pinion:packages/sdk_loader";
import { levelFor } from "pinion:packages/sdk_models";
import { BUILT_IN, chooseTools, listed } from "pinion:packages/sdk_tools";
import { lazy } from "pinion:runtime/lazy";

/** Events whose handlers can change something; the engine asks about them. */
const QUESTIONS = ["before_agent_start", "context", "tool_call", "tool_result"];

const words = (error) => (error instanceof Error ? error.message : String(error));
const plain = (value) => JSON.parse(JSON.stringify(value));
export class AgentSession {
  #id; #starting; #listeners = new Set(); #custom = new Map(); #controllers = new Map(); #settled = []; #disposed = false; #events = Promise.resolve();
  #known; #active; #permitted; #options; #stale = false; #queues = { steering: [], followUp: [] };

  constructor(options) {
    const { cwd, sessionManager, settingsManager, resourceLoader, modelRegistry, modelRuntime, customTools, model, thinkingLevel, messages } = options;
    Object.assign(this, { sessionManager, settingsManager, resourceLoader, modelRegistry, modelRuntime, scopedModels: options.scopedModels ?? [], promptTemplates: [] });
    this.#options = options;
    this._cwd = cwd;
    this._extensions = resourceLoader.getExtensions?.().extensions ?? [];
    const own = this._extensions.filter(({ isChild }) => isChild);
    const inherited = this._extensions.filter(({ isChild }) => !isChild).flatMap(({ tools }) => [...(tools?.keys() ?? [])]);
    for (const tool of [...own.flatMap(({ tools }) => [...tools.values()]), ...customTools]) this.#custom.set(tool.name, tool);
    this.#known = [...new Set([...BUILT_IN, ...inherited, ...this.#custom.keys()])];
    const chosen = chooseTools(this.#known, options, [...inherited, ...this.#custom.keys()]);
    [this.#active, this.#permitted] = [chosen.active, chosen.permitted];
    for (const extension of own) extension.session = this;
    this.agent = this.#agent({ messages, model, thinkingLevel });
    this.extensionRunner = {
      hasHandlers: (event) => own.some(({ handlers }) => (handlers.get(event)?.length ?? 0) > 0),
      emit: (event) => this.#emit(event),
      getAllRegisteredTools: () => own.flatMap((extension) => [...extension.tools.values()].map((definition) => ({ definition, sourceInfo: extension.sourceInfo }))),
      getExtensionPaths: () => own.map(({ path }) => path), onError: () => () => {}, createContext: () => this.#context(), invalidate() {},
    };
  }

  /** Creates `session.agent`: the state, and the functions that belong to the session. */
  #agent(initial) {
    const session = this;
    let { messages } = initial;
    const state = {
      model: initial.model, thinkingLevel: initial.thinkingLevel, isStreaming: false, streamingMessage: undefined, streamMessage: null,
      pendingToolCalls: new Set(), errorMessage: undefined, error: undefined,
      get systemPrompt() { return session.systemPrompt; },
      set systemPrompt(text) { session.#options.systemPrompt = text; session.#stale = true; },
      get tools() { return session.getAllTools().filter(({ name }) => session.#active.includes(name)); },
      set tools(tools) { session.setActiveToolsByName(tools.map(({ name }) => name)); },
      get messages() { return messages; },
      // The engine begins again with a conversation that was set from outside.
      set messages(value) { messages = value; session.#stale = true; },
    };
    return {
      state, get sessionId() { return session.sessionId; }, get signal() { return undefined; },
      subscribe: (listener) => session.subscribe(listener), abort: () => void session.abort(), waitForIdle: () => session.waitForIdle(),
      hasQueuedMessages: () => session.pendingMessageCount > 0, prompt: (text) => session.prompt(text),
      steer: (message) => void session.steer(textOf(message)), followUp: (message) => void session.followUp(textOf(message)),
      replaceMessages: (value) => { state.messages = value; }, appendMessage: (message) => { state.messages = [...messages, message]; },
      setModel: (model) => { state.model = model; session.#stale = true; }, setThinkingLevel: (level) => session.setThinkingLevel(level),
      setSystemPrompt: (text) => { state.systemPrompt = text; }, clearAllQueues: () => session.clearQueue(),
    };
  }

  get state() { return this.agent.state; }
  get messages() { return this.state.messages; }
  get model() { return this.state.model; }
  get thinkingLevel() { return this.state.thinkingLevel; }
  get isStreaming() { return this.state.isStreaming; }
  get isIdle() { return !this.isStreaming; }
  get isCompacting() { return this._compacting === true; }
  get isRetrying() { return this._retrying === true; }
  get isBashRunning() { return false; }
  get sessionId() { return this.sessionManager.getSessionId(); }
  get sessionFile() { return this.sessionManager.getSessionFile(); }
  get sessionName() { return this.sessionManager.getSessionName(); }
  get autoCompactionEnabled() { return this._autoCompaction ?? this.settingsManager.getCompactionEnabled(); }
  get autoRetryEnabled() { return this._autoRetry ?? this.settingsManager.getRetryEnabled(); }
  setAutoCompactionEnabled(enabled) { this._autoCompaction = enabled; this.#stale = true; }
  setAutoRetryEnabled(enabled) { this._autoRetry = enabled; this.#stale = true; }
  setSessionName(name) { this.sessionManager.appendSessionInfo(name); this.#tell({ type: "session_info_changed", name }); }
  setScopedModels(models) { this.scopedModels = models; }

  get systemPrompt() { return (this.#id === undefined ? undefined : now(home, "child.systemPrompt", this.#id)) ?? this.#prompt() ?? now(home, "systemPrompt"); }
  /** Returns the prompt that the loader describes; undefined if it is the program's own. */
  #prompt() {
    const { systemPrompt } = this.#options;
    if (systemPrompt !== undefined) return systemPrompt;
    const loader = this.resourceLoader;
    const [given, append] = [loader.getSystemPrompt?.(), (loader.getAppendSystemPrompt?.() ?? []).filter(Boolean)];
    if (given === undefined) return append.length === 0 ? undefined : [now(home, "systemPrompt"), ...append].join("\n\n");
    const files = (loader.getAgentsFiles?.().agentsFiles ?? []).map(({ path, content }) => `## ${path}\n\n${content}`);
    const skills = this.#active.includes("read") ? formatSkillsForPrompt(loader.getSkills?.().skills ?? []).trim() : "";
    const context = files.length === 0 ? "" : `# Project Context\n\n${files.join("\n\n")}`;
    const place = `Current date: ${new Date().toISOString().slice(0, 10)}\nCurrent working directory: ${this._cwd}`;
    return [given, ...append, context, skills, place].filter(Boolean).join("\n\n");
  }

  getActiveToolNames() { return [...this.#active]; }
  getCallableToolNames() { return [...this.#active]; }
  setActiveToolsByName(names) {
    this.#active = names.filter((name) => this.#permitted.includes(name));
    if (this.#id !== undefined) now(home, "child.setActiveTools", this.#id, this.#active);
  }
  getAllTools() {
    const own = [...this.#custom.values()].map(({ name, description, parameters }) => ({ name, description, parameters, sourceInfo: { source: "sdk", scope: "temporary", origin: "top-level" } }));
    const program = now(home, "allTools").filter(({ name }) => this.#permitted.includes(name) && !this.#custom.has(name));
    return [...program, ...own.filter(({ name }) => this.#permitted.includes(name))];
  }
  getToolDefinition(name) { return this.#custom.get(name) ?? this.getAllTools().find((tool) => tool.name === name); }
  /** Adds a tool that an extension of this session registered after its start. */
  _addTool(tool) {
    this.#custom.set(tool.name, tool);
    if (this.#options.tools && !listed(this.#options.tools, tool.name)) return;
    this.#known.push(tool.name);
    this.#permitted.push(tool.name);
    this.#active.push(tool.name);
    this.#stale = true;
  }
  _exec(command, args, options) { return lazy("api/exec").exec(home, command, args, { cwd: this._cwd, ...options }); }

  subscribe(listener) { this.#listeners.add(listener); return () => this.#listeners.delete(listener); }
  #tell(event) {
    for (const listener of [...this.#listeners]) {
      try { listener(event); } catch (error) { ops.core.reportUncaught(error); }
    }
  }

  #context() {
    const session = this;
    return {
      cwd: this._cwd, hasUI: false, mode: "print", sessionManager: this.sessionManager, modelRegistry: this.modelRegistry,
      get ui() { return lazy("api/ui").silentUi(); }, get model() { return session.model; }, get thinkingLevel() { return session.thinkingLevel; },
      scopedModels: this.scopedModels, isProjectTrusted, isIdle: () => session.isIdle, signal: undefined,
      abort: () => void session.abort(), hasPendingMessages: () => session.pendingMessageCount > 0, shutdown() {},
      getContextUsage: () => session.getContextUsage(), compact: (options) => void session.compact(options?.customInstructions),
      getSystemPrompt: () => session.systemPrompt,
    };
  }
  #handlers(type) { return this._extensions.filter(({ isChild }) => isChild).flatMap(({ path, handlers }) => (handlers.get(type) ?? []).map((handler) => ({ path, handler }))); }
  #failed(path, event, error) {
    this._onError?.({ extensionPath: path, event, error: words(error), stack: error?.stack });
  }
  /** Calls the handlers of the session's own extensions, in order. */
  async #emit(event, take) {
    for (const { path, handler } of this.#handlers(event.type)) {
      try {
        const result = await handler(event, this.#context());
        if (take?.(result) === true) return;
      } catch (error) {
        if (take?.failed?.(error) === true) return;
        this.#failed(path, event.type, error);
      }
    }
  }
  async bindExtensions({ onError } = {}) {
    this._onError = onError ?? this._onError;
    await this.#emit(this.#options.sessionStartEvent ?? { type: "session_start", reason: "startup" });
  }
  async reload() { await this.resourceLoader.reload(); }

  /** Starts the engine's session with the conversation so far. */
  async #start() {
    if (this.#disposed) throw new Error("The session is disposed");
    if (this.#id !== undefined && this.#stale) this.#close();
    if (this.#id !== undefined) return this.#id;
    this.#stale = false;
    const { model, thinkingLevel, messages } = this.state;
    const custom = this.#permitted.filter((name) => this.#custom.has(name)).map((name) => this.#custom.get(name));
    const id = await later(home, "child.start", {
      provider: model?.provider, model: model?.id, level: thinkingLevel, cwd: this._cwd,
      tools: this.#permitted.filter((name) => !this.#custom.has(name)), activeTools: this.#active.filter((name) => !this.#custom.has(name)),
      customTools: custom.map((tool) => ({
        name: String(tool.name), description: String(tool.description ?? ""), parameters: plain(tool.parameters ?? { type: "object", properties: {} }),
        snippet: tool.promptSnippet, guidelines: (tool.promptGuidelines ?? []).map(String), sequential: tool.executionMode === "sequential",
      })),
      systemPrompt: this.#prompt(), messages: plain(messages), autoCompaction: this.autoCompactionEnabled, autoRetry: this.autoRetryEnabled,
      asks: QUESTIONS.filter((type) => this.#handlers(type).length > 0),
    });
    if (this.#disposed) {
      now(home, "child.close", id);
      throw new Error("The session is disposed");
    }
    this.#id = id;
    // The engine starts with tools of the script behind its own.
    if (custom.length > 0) now(home, "child.setActiveTools", id, this.#active);
    this.#follow(id);
    return id;
  }
  #started() {
    this.#starting = (this.#starting ?? Promise.resolve()).catch(() => {}).then(() => this.#start());
    return this.#starting;
  }
  #close() {
    const id = this.#id;
    this.#id = undefined;
    for (const controller of this.#controllers.values()) controller.abort();
    this.#controllers.clear();
    now(home, "child.close", id);
  }

  async #follow(id) {
    for (;;) {
      const events = await later(home, "child.next", id).catch(() => null);
      if (events === null) break;
      for (const event of events) {
        try {
          if (event.type === "question") this.#answer(id, event);
          else if (event.type === "stopTool") this.#controllers.get(event.given.toolCallId)?.abort();
          else if (event.type !== "withdrawn") this.#take(event);
        } catch (error) { ops.core.reportUncaught(error); }
      }
    }
    if (this.#id === id) this.#id = undefined;
    this.#release();
  }
  #release() { for (const resolve of this.#settled.splice(0)) resolve(); }

  /** Updates the state for an event and passes it on. */
  #take(event) {
    const { state } = this;
    switch (event.type) {
      case "agent_start": state.isStreaming = true; state.errorMessage = state.error = undefined; break;
      case "message_start": if (event.message.role === "assistant") state.streamingMessage = event.message; break;
      case "message_update": state.streamingMessage = event.message; event.assistantMessageEvent.partial = event.message; break;
      case "message_end": this.#keep(event.message); break;
      case "tool_execution_start": state.pendingToolCalls = new Set([...state.pendingToolCalls, event.toolCallId]); break;
      case "tool_execution_end": state.pendingToolCalls = new Set([...state.pendingToolCalls].filter((known) => known !== event.toolCallId)); break;
      case "turn_end": if (event.message.errorMessage) state.errorMessage = state.error = event.message.errorMessage; break;
      case "queue_update": this.#queues = { steering: event.steering, followUp: event.followUp }; break;
      case "compaction_start": this._compacting = true; break;
      case "compaction_end": this._compacting = false; if (event.result) this.#refresh(); break;
      case "auto_retry_start": this._retrying = true; break;
      case "auto_retry_end": this._retrying = false; break;
      case "agent_settled": Object.assign(state, { isStreaming: false, streamingMessage: undefined, pendingToolCalls: new Set() }); break;
    }
    this.#tell(event);
    if (!QUESTIONS.includes(event.type) && this.#handlers(event.type).length > 0) this.#events = this.#events.then(() => this.#emit(event));
    if (event.type === "agent_settled") this.#release();
  }
  #keep(message) {
    this.state.streamingMessage = undefined;
    this.state.messages.push(message);
    if (message.role === "custom") this.sessionManager.appendCustomMessageEntry(message.customType, message.content, message.display, message.details);
    else this.sessionManager.appendMessage(message);
  }
  /** Takes over the conversation of the engine, which a compaction has replaced. */
  #refresh() {
    const stale = this.#stale;
    this.state.messages = now(home, "child.messages", this.#id) ?? this.state.messages;
    this.#stale = stale;
  }

  async #answer(id, { question, kind, given }) {
    const answer = kind === "runTool" ? await this.#runTool(id, question, given) : await this.#ask(kind, given);
    if (this.#id !== id) return;
    const reply = (value) => now(home, "child.reply", id, question, value === undefined ? null : value);
    try {
      reply(answer);
    } catch {
      // An answer that is not JSON must not leave the question open, and a guard without an answer refuses the call.
      const reason = `A handler of ${kind} changed the arguments to a value that is not JSON.`;
      reply(kind === "tool_call" ? { block: true, reason } : null);
    }
  }
  async #runTool(id, question, { toolName, toolCallId, input }) {
    const tool = this.#custom.get(toolName);
    const controller = new AbortController();
    this.#controllers.set(toolCallId, controller);
    const onUpdate = (partial) => { if (this.#id === id) now(home, "child.update", id, question, plain(partial)); };
    try {
      const params = tool.prepareArguments ? tool.prepareArguments(input) : input;
      return { output: plain(await tool.execute(toolCallId, params, controller.signal, onUpdate, this.#context()) ?? { content: [] }) };
    } catch (error) {
      return { error: words(error) };
    } finally {
      this.#controllers.delete(toolCallId);
    }
  }
  async #ask(type, given) {
    if (type === "context") {
      let messages = given;
      await this.#emit({ type, get messages() { return messages; }, set messages(value) { messages = value; } }, (result) => { messages = result?.messages ?? messages; });
      return messages;
    }
    if (type === "before_agent_start") {
      const messages = [];
      const event = { type, prompt: given.prompt, images: given.images ?? undefined, systemPrompt: given.systemPrompt, systemPromptOptions: { cwd: this._cwd, selectedTools: this.#active } };
      await this.#emit(event, (result) => {
        if (result?.message) messages.push({ role: "custom", display: true, timestamp: Date.now(), ...result.message });
        if (result?.systemPrompt !== undefined) event.systemPrompt = result.systemPrompt;
      });
      return { messages, systemPrompt: event.systemPrompt === given.systemPrompt ? undefined : event.systemPrompt };
    }
    if (type === "tool_call") {
      let verdict = {};
      const take = (result) => { if (result?.block) verdict = { block: true, reason: result.reason }; return Boolean(result?.block); };
      // A guard that fails has not allowed the call.
      take.failed = (error) => { verdict = { block: true, reason: words(error) }; return true; };
      await this.#emit({ type, ...given }, take);
      return { input: given.input, ...verdict };
    }
    const event = { type, details: undefined, ...given };
    let isChanged = false;
    await this.#emit(event, (result) => {
      for (const name of ["content", "details", "isError"]) {
        if (result?.[name] !== undefined) { event[name] = result[name]; isChanged = true; }
      }
    });
    return isChanged ? { content: event.content, details: event.details, isError: event.isError } : undefined;
  }

  #untilSettled() { return new Promise((resolve) => this.#settled.push(resolve)); }
  /** Sends a prompt and waits for the run that it starts. While a run is active the prompt joins a queue. */
  async prompt(text, { images, streamingBehavior, preflightResult } = {}) {
    const busy = this.isStreaming;
    if (busy && !streamingBehavior) throw new Error("Agent is already processing. Specify streamingBehavior ('steer' or 'followUp') to queue the message.");
    if (!busy && !this.model) throw new Error("No model selected.");
    const id = busy ? this.#id : await this.#started();
    const settled = busy ? undefined : this.#untilSettled();
    try {
      await later(home, "child.prompt", id, String(text), { images, streamingBehavior });
    } catch (error) {
      this.#release();
      throw error;
    }
    preflightResult?.(busy ? "queued" : "started");
    await settled;
    await this.#events;
  }
  async #queue(text, how, images) {
    await later(home, "child.queue", await this.#started(), String(text), how, images ?? []);
    return "queued";
  }
  steer(text, images) { return this.#queue(text, "steer", images); }
  followUp(text, images) { return this.#queue(text, "followUp", images); }
  async sendUserMessage(content, { deliverAs } = {}) {
    const blocks = typeof content === "string" ? [{ type: "text", text: content }] : content;
    const images = blocks.filter(({ type }) => type === "image");
    await this.prompt(textOf({ content: blocks }), { images, streamingBehavior: deliverAs ?? (this.isStreaming ? "followUp" : undefined) });
  }
  async sendCustomMessage({ customType, content, display = true, details }, { triggerTurn } = {}) {
    const message = { role: "custom", customType, content, display, details, timestamp: Date.now() };
    if (!triggerTurn && !this.isStreaming) {
      this.#keep(message);
      this.#stale = true;
      return;
    }
    const settled = this.isStreaming ? undefined : this.#untilSettled();
    await later(home, "child.message", await this.#started(), message);
    await settled;
  }
  clearQueue() { const queues = this.#queues; this.#queues = { steering: [], followUp: [] }; return queues; }
  get pendingMessageCount() { return this.#queues.steering.length + this.#queues.followUp.length; }
  getSteeringMessages() { return this.#queues.steering; }
  getFollowUpMessages() { return this.#queues.followUp; }

  async abort() {
    if (this.#id === undefined) return;
    await later(home, "child.abort", this.#id).catch(() => {});
  }
  abortRetry() { void this.abort(); }
  abortCompaction() { void this.abort(); }
  abortBranchSummary() {}
  abortBash() {}
  async waitForIdle() { if (this.isStreaming) await this.#untilSettled(); }
  async compact(instructions) { return later(home, "child.compact", await this.#started(), instructions); }

  async setModel(model) {
    this.state.model = model;
    this.sessionManager.appendModelChange(model.provider, model.id);
    this.setThinkingLevel(levelFor(model, this.thinkingLevel));
    if (this.#id !== undefined) await later(home, "child.setModel", this.#id, { provider: model.provider, id: model.id });
  }
  setThinkingLevel(level) {
    const found = levelFor(this.model, level);
    if (found === this.state.thinkingLevel) return;
    this.state.thinkingLevel = found;
    this.sessionManager.appendThinkingLevelChange(found);
    if (this.#id !== undefined) now(home, "child.setLevel", this.#id, found);
  }
  getAvailableThinkingLevels() { return this.model ? getSupportedThinkingLevels(this.model) : ["off"]; }
  supportsThinking() { return Boolean(this.model?.reasoning); }

  getContextUsage() { return (this.#id === undefined ? undefined : now(home, "child.contextUsage", this.#id)) ?? undefined; }
  getSessionStats() {
    const of = (role) => this.messages.filter((message) => message.role === role);
    const answers = of("assistant");
    const sum = (name) => answers.reduce((total, { usage }) => total + (usage?.[name] ?? 0), 0);
    const tokens = { input: sum("input"), output: sum("output"), cacheRead: sum("cacheRead"), cacheWrite: sum("cacheWrite") };
    return {
      sessionFile: this.sessionFile, sessionId: this.sessionId, userMessages: of("user").length, assistantMessages: answers.length,
      toolCalls: answers.flatMap(({ content }) => content).filter(({ type }) => type === "toolCall").length, toolResults: of("toolResult").length,
      totalMessages: this.messages.length, tokens: { ...tokens, total: tokens.input + tokens.output + tokens.cacheRead + tokens.cacheWrite },
      cost: answers.reduce((total, { usage }) => total + (usage?.cost?.total ?? 0), 0), contextUsage: this.getContextUsage(),
    };
  }
  getLastAssistantText() {
    const answer = this.messages.findLast(({ role, stopReason, content }) => role === "assistant" && !(stopReason === "aborted" && content.length === 0));
    return answer ? textOf(answer).trim() || undefined : undefined;
  }
  getUserMessagesForForking() {
    return this.sessionManager.getEntries().filter(({ type, message }) => type === "message" && message.role === "user").map(({ id, message }) => ({ entryId: id, text: textOf(message) }));
  }

  dispose() {
    if (this.#disposed) return;
    this.#disposed = true;
    if (this.#id !== undefined) this.#close();
    this.state.isStreaming = false;
    this.#listeners.clear();
    this.#release();
  }
}

const textOf = ({ content }) => (typeof content === "string" ? content : content.filter(({ type }) => type === "text").map(({ text }) => text).join("\n"));
