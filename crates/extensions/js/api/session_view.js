// The session file as extensions see it: `ctx.sessionManager`, and the one that `setup` may write to.

import { later, now } from "pinion:api/bridge";

/** Returns the read-only view of the session of `seat`. */
export function sessionView(seat) {
  const look = (what, ...values) => now(seat, "session", what, ...values);
  const view = {
    getCwd: () => look("cwd"),
    getSessionDir: () => look("directory") ?? "",
    getSessionId: () => look("id"),
    getSessionFile: () => look("file") ?? undefined,
    getLeafId: () => look("leaf") ?? null,
    getLeafEntry: () => {
      const leaf = view.getLeafId();
      return leaf === null ? undefined : view.getEntry(leaf);
    },
    getEntry: (id) => look("entry", id) ?? undefined,
    getLabel: (id) => look("label", id) ?? undefined,
    getBranch: (from) => look("branch", from),
    getHeader: () => look("header"),
    getEntries: () => look("entries"),
    getTree: () => tree(view.getEntries(), look("labels")),
    getChildren: (parent) => view.getEntries().filter((entry) => entry.parentId === parent),
    getSessionName: () => look("name") ?? undefined,
    isPersisted: () => view.getSessionFile() !== undefined,
    buildSessionContext: () => look("context"),
  };
  return view;
}

// Built here and not parsed, because the tree is as deep as the conversation is long.
function tree(entries, labels) {
  const nodes = new Map();
  for (const entry of entries) {
    const node = { entry, children: [] };
    const label = labels[entry.id];
    if (label !== undefined) node.label = label;
    nodes.set(entry.id, node);
  }
  const roots = [];
  for (const node of nodes.values()) {
    const parent = nodes.get(node.entry.parentId);
    (parent && parent !== node ? parent.children : roots).push(node);
  }
  return roots;
}

/** Returns the view of a new session, which can also be written. */
export function writableSession(seat) {
  const append = (what, ...values) => now(seat, "append", what, ...values);
  return {
    ...sessionView(seat),
    appendMessage: (message) => append("message", message),
    appendCustomEntry: (customType, data) => append("custom", customType, data),
    appendCustomMessageEntry: (customType, content, display, details) =>
      append("message", {
        role: "custom",
        customType,
        content,
        display: Boolean(display),
        details,
        timestamp: Date.now(),
      }),
    appendSessionInfo: (name) => append("name", name),
    appendLabelChange: (id, label) => append("label", id, label),
    appendThinkingLevelChange: (level) => append("level", level),
    appendModelChange: (provider, id) => later(seat, "setModel", { provider, id }),
  };
}
