// The session in this page: its tree, its labels, its sums. Knows nothing of the document.

class Session {
  constructor(data) {
    this.header = data.header || {};
    this.entries = (data.entries || []).filter((entry) => entry && typeof entry.id === "string");
    this.systemPrompt = data.systemPrompt || "";
    this.tools = data.tools || [];
    this.byId = new Map(this.entries.map((entry) => [entry.id, entry]));
    this.leafId = this.byId.has(data.leafId) ? data.leafId : lastId(this.entries);
    this.labels = new Map();
    this.calls = new Map();
    this.children = new Map();
    this.name = "";
    for (const entry of this.entries) this.note(entry);
  }

  note(entry) {
    if (this.byId.get(entry.id) !== entry) return;
    const parent = this.byId.has(entry.parentId) ? entry.parentId : null;
    if (!this.children.has(parent)) this.children.set(parent, []);
    this.children.get(parent).push(entry.id);
    if (entry.type === "session_info") this.name = (entry.name || "").trim();
    if (entry.type === "label" && entry.label) this.labels.set(entry.targetId, entry.label);
    else if (entry.type === "label") this.labels.delete(entry.targetId);
    for (const call of toolCalls(entry)) this.calls.set(call.id, call);
  }

  /** Entries from the root to `id`. */
  pathTo(id) {
    const path = [];
    const seen = new Set();
    for (let entry = this.byId.get(id); entry && !seen.has(entry.id); entry = this.byId.get(entry.parentId)) {
      seen.add(entry.id);
      path.push(entry);
    }
    return path.reverse();
  }

  /** The newest leaf below `id`. */
  newestLeaf(id) {
    const seen = new Set();
    let children = this.children.get(id);
    while (children && children.length && !seen.has(id)) {
      seen.add(id);
      id = children[children.length - 1];
      children = this.children.get(id);
    }
    return id;
  }

  totals() {
    const totals = {
      user: 0, assistant: 0, toolResult: 0, custom: 0, compaction: 0, branch: 0, calls: 0,
      input: 0, output: 0, cacheRead: 0, cacheWrite: 0, cost: 0, models: new Set(),
    };
    for (const entry of this.entries) {
      if (this.byId.get(entry.id) !== entry) continue;
      if (entry.type === "compaction") totals.compaction += 1;
      if (entry.type === "branch_summary") totals.branch += 1;
      if (entry.type === "custom_message") totals.custom += 1;
      const message = entry.type === "message" && entry.message;
      if (!message) continue;
      if (message.role in totals) totals[message.role] += 1;
      if (message.role !== "assistant") continue;
      totals.calls += toolCalls(entry).length;
      if (message.model) totals.models.add(message.provider ? `${message.provider}/${message.model}` : message.model);
      const usage = message.usage || {};
      for (const kind of ["input", "output", "cacheRead", "cacheWrite"]) totals[kind] += usage[kind] || 0;
      totals.cost += (usage.cost && usage.cost.total) || 0;
    }
    return totals;
  }

  /** The file this page was made from. */
  toJsonl() {
    return [this.header, ...this.entries].map((value) => JSON.stringify(value) + "\n").join("");
  }
}

function readData(element) {
  const text = atob(element.textContent.trim());
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at += 1) bytes[at] = text.charCodeAt(at);
  return JSON.parse(new TextDecoder().decode(bytes));
}

function lastId(entries) {
  return entries.length ? entries[entries.length - 1].id : null;
}

function blocksOf(content) {
  if (typeof content === "string") return content ? [{ type: "text", text: content }] : [];
  return Array.isArray(content) ? content.filter((block) => block && typeof block === "object") : [];
}

function textOf(content) {
  return blocksOf(content).filter((block) => block.type === "text").map((block) => block.text || "").join("\n");
}

function imagesOf(content) {
  return blocksOf(content).filter((block) => block.type === "image" && block.data);
}

function toolCalls(entry) {
  const message = entry.type === "message" && entry.message;
  if (!message || message.role !== "assistant") return [];
  return blocksOf(message.content).filter((block) => block.type === "toolCall");
}

function pathArgument(args) {
  return args.path || args.file_path || args.filePath || "";
}

/** One line that says what a tool was asked to do. */
function callSummary(name, args) {
  args = args || {};
  if (name === "bash") return `$ ${args.command || ""}`;
  const path = pathArgument(args);
  if (path) return `${name} ${path}`;
  const text = JSON.stringify(args);
  return text === "{}" ? name : `${name} ${text}`;
}

/** Who an entry is from and what it says, for one row of the tree. */
function outline(session, entry) {
  const message = entry.message || {};
  switch (entry.type) {
    case "message":
      switch (message.role) {
        case "user": return { kind: "user", who: "User", text: textOf(message.content) || "(image)" };
        case "assistant": {
          const text = textOf(message.content);
          const calls = toolCalls(entry).map((call) => callSummary(call.name, call.arguments)).join("  ");
          const failed = message.stopReason === "error" || message.stopReason === "aborted";
          const said = text || (failed ? message.errorMessage || message.stopReason : calls) || "(nothing)";
          return { kind: failed ? "assistant failed" : "assistant", who: "Assistant", text: said, silent: !text && !failed };
        }
        case "toolResult": {
          const call = session.calls.get(message.toolCallId);
          return { kind: message.isError ? "tool failed" : "tool", who: "", text: callSummary(message.toolName, call && call.arguments) };
        }
        case "bashExecution": return { kind: "tool", who: "", text: `! ${message.command || ""}` };
        case "custom": return { kind: "custom", who: message.customType || "Custom", text: textOf(message.content) };
        default: return { kind: "setting", who: message.role || "message", text: textOf(message.content) };
      }
    case "custom_message": return { kind: "custom", who: entry.customType || "Custom", text: textOf(entry.content) };
    case "compaction": return { kind: "custom", who: "Compaction", text: `${abbreviate(entry.tokensBefore)} tokens` };
    case "branch_summary": return { kind: "custom", who: "Branch summary", text: entry.summary || "" };
    case "model_change": return { kind: "setting", who: "", text: `model ${entry.provider}/${entry.modelId}` };
    case "thinking_level_change": return { kind: "setting", who: "", text: `thinking ${entry.thinkingLevel}` };
    case "label": return { kind: "setting", who: "", text: entry.label ? `label ${entry.label}` : "label removed" };
    case "session_info": return { kind: "setting", who: "", text: `name ${entry.name || ""}` };
    case "custom": return { kind: "setting", who: "", text: `state ${entry.customType || ""}` };
    default: return { kind: "setting", who: "", text: entry.type || "entry" };
  }
}

function abbreviate(count) {
  count = count || 0;
  if (count < 1000) return String(Math.round(count));
  if (count < 10000) return `${(count / 1000).toFixed(1)}k`;
  if (count < 1000000) return `${Math.round(count / 1000)}k`;
  return `${(count / 1000000).toFixed(1)}M`;
}

function timeOf(entry) {
  const time = new Date(entry.timestamp || (entry.message && entry.message.timestamp) || NaN);
  return Number.isNaN(time.getTime()) ? null : time;
}
