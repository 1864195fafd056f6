// A conversation with the agent, through its clip. It continues while the user looks at other pages.

import { h, fill, freshId, problem, route } from "../dom.js";
import { hub } from "../hub.js";
import { isAbort, textOf, RpcError } from "../connect.js";
import { block } from "../results.js";
import { elapsed, number } from "../words.js";

const ALIAS = "agent";
let conversation = null;

export async function showAgent(page) {
  conversation ??= new Conversation();
  const talk = conversation;
  talk.page = page;
  const input = h("textarea", { id: freshId("prompt"), rows: 3, placeholder: "Ask the agent to do something", required: true });
  const send = h("button.primary", { type: "submit" }, "Send");
  const stop = h("button", { type: "button", on: { click: () => talk.stop() } }, "Stop");
  const fresh = h("button.small.quiet", { type: "button" }, "New conversation");
  const missing = h("div");
  const submit = (event) => {
    event.preventDefault();
    const message = input.value.trim();
    if (!message) return;
    if (talk.running && !talk.maySteer) return;
    input.value = "";
    if (talk.running) talk.steer(message);
    else talk.say(message);
  };
  const form = h("form.prompt", { on: { submit } },
    h("label.offscreen", { for: input.id }, "Message"), input,
    h("div.actions", send, stop, h("span.hint.keys", h("kbd", "Enter"), " sends, ", h("kbd", "Shift"), "+", h("kbd", "Enter"), " starts a new line")));
  input.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.ctrlKey || event.metaKey || event.isComposing) return;
    event.preventDefault();
    form.requestSubmit();
  });
  talk.changed = () => {
    send.disabled = talk.running && !talk.maySteer;
    send.textContent = talk.running && talk.maySteer ? "Steer" : "Send";
    stop.disabled = !talk.running;
    fresh.disabled = talk.running || !talk.timeline.childElementCount;
  };
  fresh.addEventListener("click", () => {
    conversation = null;
    showAgent(page);
  });
  page.signal.addEventListener("abort", () => (talk.changed = () => {}));
  fill(page.main, h("div.page-head", h("h1", "Agent"), h("div.tools", fresh)), missing,
    talk.timeline, talk.state, form);
  talk.changed();
  input.focus();
  page.clips.watch((list) => {
    const isThere = !list || list.some((clip) => clip.name === ALIAS);
    fill(missing, isThere ? null : h("p.empty", "This hub has no clip named ", h("code", ALIAS), ", so you cannot talk to an agent here. ", h("a", { href: route("clips") }, "All clips")));
  }, page.signal);
}

class Conversation {
  topic = null;
  running = false;
  changed = () => {};
  timeline = h("div.timeline", { role: "log", "aria-label": "Conversation", "aria-live": "polite" });
  state = h("p.hint", { role: "status" });
  #call = null;
  #open = null;
  #failure = null;
  #calls = new Map();

  stop() {
    this.#call?.abort();
  }

  /** Reports whether the agent accepts a message during the current run. */
  get maySteer() {
    return this.running && this.topic !== null && this.page.clips.find(ALIAS)?.commands?.some(({ name }) => name === "steer");
  }

  /** Adds a message to the current run. */
  async steer(message) {
    this.#close();
    this.#add(h("div.turn.user", h("span.speaker", "You, during the run"), h("p.said", message)));
    try {
      for await (const response of hub.invoke(ALIAS, "steer", { topic_id: this.topic, message })) {
        if (response.error) throw new RpcError(response.error.code || "internal", response.error.message);
      }
    } catch (error) {
      if (error.code === "unauthenticated") this.page.fail(error);
      else this.#add(problem(error));
    }
  }

  async say(message) {
    this.#call = new AbortController();
    this.running = true;
    this.changed();
    this.#calls.clear();
    this.#failure = null;
    this.#add(h("div.turn.user", h("span.speaker", "You"), h("p.said", message)));
    const started = performance.now();
    const tick = setInterval(() => (this.state.textContent = `Working, ${elapsed(performance.now() - started)}`), 500);
    this.state.textContent = "Working";
    const input = this.topic ? { message, topic_id: this.topic } : { message };
    let ended = "Done";
    try {
      for await (const response of hub.invoke(ALIAS, "chat", input, { signal: this.#call.signal })) {
        if (response.error) throw new RpcError(response.error.code || "internal", response.error.message);
        this.#take(JSON.parse(textOf(response.output) || "{}"));
      }
      this.topic ??= await newestTopic();
    } catch (error) {
      ended = isAbort(error) ? "Stopped" : "Failed";
      if (isAbort(error)) this.#add(h("p.event-note", "You stopped the run."));
      else if (error.code === "unauthenticated") this.page.fail(error);
      else if (error.message !== this.#failure) this.#add(problem(error));
    } finally {
      clearInterval(tick);
      this.#close();
      this.#call = null;
      this.running = false;
      this.state.textContent = `${ended} in ${elapsed(performance.now() - started)}`;
      this.changed();
    }
  }

  #take(event) {
    if (typeof event?.topic_id === "string" && event.topic_id !== this.topic) {
      this.topic = event.topic_id;
      this.changed();
    }
    switch (event?.type) {
      case "text":
      case "thinking":
        this.#write(event.type, String(event.content ?? ""));
        break;
      case "tool_call":
        this.#toolCall(event);
        break;
      case "tool_result":
        this.#toolResult(event);
        break;
      case "usage":
        this.#close();
        this.#add(h("p.event-note", used(event)));
        break;
      case "error":
        this.#close();
        this.#failure = String(event.error ?? "The run failed.");
        this.#add(problem({ code: event.code ?? "error", message: this.#failure }));
        break;
      case "done":
        this.#close();
        break;
      default:
        if (typeof event?.error === "string") this.#add(problem({ code: "error", message: event.error }));
    }
  }

  /** Appends to the open text of this kind, or starts one. */
  #write(kind, text) {
    if (this.#open?.kind !== kind) {
      this.#close();
      const node = document.createTextNode("");
      const element = kind === "text"
        ? h("div.turn.agent", h("span.speaker", "Agent"), h("p.said", node))
        : h("details.turn.thinking", { open: true }, h("summary", "Thinking"), h("p.said", node));
      this.#open = { kind, node, element };
      this.#add(element);
    }
    this.#open.node.appendData(text);
    this.#scroll();
  }

  #close() {
    if (!this.#open) return;
    const { kind, node, element } = this.#open;
    this.#open = null;
    if (kind === "thinking") element.open = false;
    else element.querySelector(".said").replaceWith(...prose(node.data));
  }

  #toolCall({ id, name, arguments: given }) {
    this.#close();
    const text = typeof given === "string" ? given : JSON.stringify(given, null, 2) ?? "";
    const result = h("div.tool-result", h("p.hint", "Running…"));
    const element = h("details.turn.tool", { data: { state: "running" } },
      h("summary", h("span.tool-name", name ?? "tool"), h("span.tool-brief", brief(text))), block(text, "json"), result);
    this.#calls.set(id, { element, result });
    this.#add(element);
  }

  #toolResult({ id, content, is_error: isError }) {
    this.#close();
    const text = typeof content === "string" ? content : JSON.stringify(content, null, 2) ?? "";
    const call = this.#calls.get(id);
    if (!call) return this.#add(h("details.turn.tool", h("summary", "Result"), block(text, typeof content === "string" ? "text" : "json")));
    call.element.dataset.state = isError ? "failed" : "done";
    fill(call.result, h("p.hint", isError ? "Failed" : "Result"), block(text, typeof content === "string" ? "text" : "json"));
    return undefined;
  }

  #add(element) {
    this.timeline.append(element);
    this.changed();
    this.#scroll();
  }

  #scroll() {
    const { scrollingElement: page } = document;
    if (this.timeline.isConnected && page.scrollHeight - page.scrollTop - page.clientHeight < 160) page.scrollTop = page.scrollHeight;
  }
}

function used({ prompt_tokens: read = 0, completion_tokens: written = 0, cost }) {
  const tokens = `${number(read)} tokens read, ${number(written)} written`;
  return cost > 0 ? `${tokens}, $${cost.toFixed(4)}` : tokens;
}

function brief(text) {
  const line = text.replace(/\s+/g, " ");
  return line.length > 90 ? `${line.slice(0, 90)}…` : line;
}

/** Finds the topic of an agent that does not report which topic it opened: the newest one. */
async function newestTopic() {
  try {
    for await (const response of hub.invoke(ALIAS, "topic list", {})) {
      if (response.error) return null;
      const answer = JSON.parse(textOf(response.output) || "{}");
      const topics = Array.isArray(answer) ? answer : answer.topics ?? [];
      const times = (topic) => Date.parse(topic.updated_at ?? topic.created_at ?? "") || 0;
      return [...topics].sort((left, right) => times(right) - times(left))[0]?.id ?? null;
    }
  } catch {
    // Without a topic, every message starts a new conversation.
  }
  return null;
}

/** Renders paragraphs and fenced code; of the rest of Markdown only inline markup. */
function prose(text) {
  return text.split(/^```[^\n]*\n([\s\S]*?)^```[ \t]*$/m).map((part, index) => {
    if (index % 2) return block(part.replace(/\n$/, ""));
    return part.trim() ? h("p.said", inline(part.trim())) : "";
  });
}

function inline(text) {
  return text.split(/(`[^`\n]+`|\*\*[^*\n]+\*\*)/).map((part, index) => {
    if (index % 2 === 0) return part;
    return part.startsWith("`") ? h("code", part.slice(1, -1)) : h("strong", part.slice(2, -2));
  });
}
