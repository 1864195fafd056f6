// Session files: reading them, walking their tree, and writing them for extensions that store their own.

import { ops } from "pinion:ops";
import { messageOf } from "pinion:packages/coding_compaction";

export const CURRENT_SESSION_VERSION = 3;

export function parseSessionEntries(content) {
  const entries = [];
  for (const line of content.split("\n")) {
    if (line.trim() === "") continue;
    try { entries.push(JSON.parse(line)); } catch { /* A torn line costs itself only. */ }
  }
  return entries;
}

const shortId = (taken) => { for (;;) { const id = ops.tools.uuid().replaceAll("-", "").slice(-8); if (!taken.has(id)) return id; } };

/** Migrates entries of older files to the current form, in place. */
export function migrateSessionEntries(entries) {
  const [header] = entries;
  const version = header?.version ?? 1;
  if (header?.type !== "session" || version >= CURRENT_SESSION_VERSION) return;
  const ids = new Set();
  let last = null;
  for (const entry of entries.slice(1)) {
    if (version < 2) {
      entry.id = shortId(ids);
      entry.parentId = last;
      ids.add(last = entry.id);
      if (entry.type === "compaction" && typeof entry.firstKeptEntryIndex === "number") {
        entry.firstKeptEntryId = entries[entry.firstKeptEntryIndex]?.id;
        delete entry.firstKeptEntryIndex;
      }
    }
    if (entry.type === "message" && entry.message?.role === "hookMessage") entry.message.role = "custom";
  }
  header.version = CURRENT_SESSION_VERSION;
}

export const getLatestCompactionEntry = (entries) => entries.findLast(({ type }) => type === "compaction") ?? null;

function pathTo(leafId, byId) {
  const path = [];
  for (let entry = byId.get(leafId); entry; entry = byId.get(entry.parentId)) path.unshift(entry);
  return path;
}

/** Returns the conversation at a leaf: the last one if none is named, nothing for `null`. */
export function buildSessionContext(entries, leafId, byId = new Map(entries.map((entry) => [entry.id, entry]))) {
  const leaf = leafId === undefined ? entries.at(-1)?.id : leafId;
  const path = leaf === null ? [] : pathTo(byId.has(leaf) ? leaf : entries.at(-1)?.id, byId);
  let thinkingLevel = "off";
  let model = null;
  for (const entry of path) {
    if (entry.type === "thinking_level_change") thinkingLevel = entry.thinkingLevel;
    else if (entry.type === "model_change") model = { provider: entry.provider, modelId: entry.modelId };
    else if (entry.type === "message" && entry.message.role === "assistant") model = { provider: entry.message.provider, modelId: entry.message.model };
  }
  const at = path.findLastIndex(({ type }) => type === "compaction");
  const kept = at < 0 ? path : [path[at], ...path.slice(Math.max(0, path.findIndex(({ id }) => id === path[at].firstKeptEntryId)), at).filter(({ type }) => type !== "compaction"), ...path.slice(at + 1)];
  const edits = new Map(path.filter(({ type }) => type === "context_edit").map(({ targetId, replacement }) => [targetId, replacement]));
  const edited = ({ id }, message) => edits.get(id)?.content === undefined ? [] : [{ ...message, content: edits.get(id).content }];
  const messages = kept.map((entry) => [entry, messageOf(entry)]).filter(([, message]) => message !== undefined)
    .flatMap(([entry, message]) => edits.has(entry.id) ? edited(entry, message) : [message]);
  return { messages, thinkingLevel, model };
}

const now = () => new Date().toISOString();

export class SessionManager {
  #cwd; #directory; #file; #persist; #entries = []; #byId = new Map(); #leaf = null; #written = false;

  constructor(cwd, directory, file, persist) {
    this.#cwd = cwd; this.#directory = directory; this.#persist = persist;
    if (file === undefined) this.newSession(); else this.setSessionFile(file);
  }

  static create(cwd, sessionDir) { return new SessionManager(cwd, sessionDir ?? ops.tools.sessionDirectory(cwd), undefined, true); }
  static inMemory(cwd = ops.tools.workingDirectory()) { return new SessionManager(cwd, "", undefined, false); }
  static open(path, sessionDir, cwdOverride) {
    const directory = sessionDir ?? path.slice(0, Math.max(1, path.lastIndexOf("/")));
    return new SessionManager(cwdOverride ?? ops.tools.workingDirectory(), directory, path, true);
  }
  static continueRecent(cwd, sessionDir) {
    const directory = sessionDir ?? ops.tools.sessionDirectory(cwd);
    return new SessionManager(cwd, directory, ops.tools.recentSession(directory), true);
  }
  static forkFrom(sourcePath, targetCwd, sessionDir) {
    const source = SessionManager.open(sourcePath);
    const made = SessionManager.create(targetCwd, sessionDir);
    made.newSession({ parentSession: sourcePath });
    for (const entry of source.getEntries()) made.#take(entry);
    made.#rewrite();
    return made;
  }
  static async list(cwd, sessionDir, onProgress) { return listed(sessionDir ?? ops.tools.sessionDirectory(cwd), onProgress); }
  static async listAll(onProgress) {
    const all = JSON.parse(ops.tools.sessionDirectories()).flatMap((directory) => listed(directory));
    onProgress?.(all.length, all.length);
    return all.sort((left, right) => right.modified - left.modified);
  }

  newSession(options = {}) {
    const id = options.id ?? ops.tools.uuid();
    const timestamp = now();
    const header = { type: "session", version: CURRENT_SESSION_VERSION, id, timestamp, cwd: this.#cwd };
    if (options.parentSession) header.parentSession = options.parentSession;
    this.#reset([header]);
    this.#file = this.#persist ? `${this.#directory}/${timestamp.replace(/[:.]/g, "-")}_${id}.jsonl` : undefined;
    this.#written = false;
    return this.#file;
  }
  setSessionFile(file) {
    const entries = parseSessionEntries(ops.tools.readText(file) ?? "");
    if (entries[0]?.type !== "session") { this.newSession(); this.#file = file; return; }
    migrateSessionEntries(entries);
    this.#file = file;
    this.#cwd = entries[0].cwd || this.#cwd;
    this.#reset(entries);
    this.#written = true;
  }
  #reset(entries) {
    this.#entries = [entries[0]];
    this.#byId.clear();
    this.#leaf = null;
    for (const entry of entries.slice(1)) this.#take(entry);
  }
  #take(entry) {
    this.#entries.push(entry);
    this.#byId.set(entry.id, entry);
    this.#leaf = entry.id;
  }
  #rewrite() {
    if (!this.#persist) return;
    ops.tools.writeText(this.#file, this.#entries.map((entry) => `${JSON.stringify(entry)}\n`).join(""));
    this.#written = true;
  }
  /** A session is written once a model has answered in it; until then no file exists. */
  _persist(entry) {
    if (!this.#persist) return;
    if (this.#written) ops.tools.appendText(this.#file, `${JSON.stringify(entry)}\n`);
    else if (this.#entries.some(({ type, message }) => type === "message" && message.role === "assistant")) this.#rewrite();
  }
  #append(type, members, trailing = false) {
    const place = { id: shortId(this.#byId), parentId: this.#leaf, timestamp: now() };
    const entry = trailing ? { type, ...members, ...place } : { type, ...place, ...members };
    this.#take(entry);
    this._persist(entry);
    return entry.id;
  }
  #known(id) {
    if (!this.#byId.has(id)) throw new Error(`Entry ${id} not found`);
    return id;
  }

  isPersisted() { return this.#persist; }
  getCwd() { return this.#cwd; }
  getSessionDir() { return this.#directory; }
  getSessionId() { return this.#entries[0].id; }
  getSessionFile() { return this.#file; }
  getHeader() { return this.#entries[0]; }
  getEntries() { return this.#entries.slice(1); }
  getEntry(id) { return this.#byId.get(id); }
  getLeafId() { return this.#leaf; }
  getLeafEntry() { return this.#leaf === null ? undefined : this.#byId.get(this.#leaf); }
  getChildren(parentId) { return this.getEntries().filter((entry) => entry.parentId === parentId); }
  getBranch(fromId = this.#leaf) { return pathTo(fromId, this.#byId); }
  getSessionName() { return this.getEntries().findLast(({ type }) => type === "session_info")?.name?.trim() || undefined; }
  buildSessionContext() { return buildSessionContext(this.getEntries(), this.#leaf, this.#byId); }
  #label(id) { return this.getEntries().findLast(({ type, targetId }) => type === "label" && targetId === id); }
  getLabel(id) { return this.#label(id)?.label || undefined; }
  getTree() {
    const nodes = new Map(this.getEntries().map((entry) => [entry.id, { entry, children: [] }]));
    const roots = [];
    for (const node of nodes.values()) {
      const label = this.#label(node.entry.id);
      if (label?.label) Object.assign(node, { label: label.label, labelTimestamp: label.timestamp });
      const parent = nodes.get(node.entry.parentId);
      if (parent) parent.children.push(node); else roots.push(node);
    }
    return roots;
  }

  appendMessage(message) { return this.#append("message", { message }); }
  appendThinkingLevelChange(thinkingLevel) { return this.#append("thinking_level_change", { thinkingLevel }); }
  appendModelChange(provider, modelId) { return this.#append("model_change", { provider, modelId }); }
  appendCompaction(summary, firstKeptEntryId, tokensBefore, details, fromHook) { return this.#append("compaction", { summary, firstKeptEntryId, tokensBefore, details, fromHook }); }
  appendCustomEntry(customType, data) { return this.#append("custom", { customType, data }, true); }
  appendSessionInfo(name) { return this.#append("session_info", { name: name.trim() }); }
  appendCustomMessageEntry(customType, content, display, details) { return this.#append("custom_message", { customType, content, display, details }, true); }
  appendLabelChange(targetId, label) { return this.#append("label", { targetId: this.#known(targetId), label }); }
  branch(branchFromId) { this.#leaf = this.#known(branchFromId); }
  resetLeaf() { this.#leaf = null; }
  branchWithSummary(branchFromId, summary, details, fromHook) {
    if (branchFromId === null) this.resetLeaf(); else this.branch(branchFromId);
    return this.#append("branch_summary", { fromId: branchFromId ?? "root", summary, details, fromHook });
  }
  createBranchedSession(leafId) {
    const path = this.getBranch(this.#known(leafId));
    const parentSession = this.#persist ? this.#file : undefined;
    this.newSession({ parentSession });
    for (const entry of path) this.#take(entry);
    this._persist(path.at(-1));
    return this.#file;
  }
}

function listed(directory, onProgress) {
  const sessions = JSON.parse(ops.tools.sessions(directory)).map((info) => ({ ...info, created: new Date(info.created), modified: new Date(info.modified) }));
  onProgress?.(sessions.length, sessions.length);
  return sessions;
}
