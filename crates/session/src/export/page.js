// The page: head, tree, conversation, and what the keys do.

const session = new Session(readData(document.getElementById("session-data")));
const find = (id) => document.getElementById(id);
const root = document.documentElement;
const asked = new URLSearchParams(location.search);

const FILTERS = [
  ["Default", (row) => row.kind !== "setting" && !row.silent],
  ["No-tools", (row) => !["setting", "tool", "tool failed"].includes(row.kind) && !row.silent],
  ["User", (row) => row.kind === "user"],
  ["Labeled", (row) => row.label],
  ["All", () => true],
];

const state = {
  leaf: session.byId.has(asked.get("leafId")) ? asked.get("leafId") : session.leafId,
  target: session.byId.has(asked.get("targetId")) ? asked.get("targetId") : null,
  filter: FILTERS[0],
  search: "",
  drawing: 0,
};

/* Theme: the system's, until somebody says otherwise. */

const prefersDark = matchMedia("(prefers-color-scheme: dark)");
const remembered = { get: () => { try { return localStorage.getItem("theme"); } catch { return null; } },
  set: (theme) => { try { localStorage.setItem("theme", theme); } catch { /* a file may have no storage */ } } };
function setTheme(theme) { root.dataset.theme = theme; }
setTheme(remembered.get() || (prefersDark.matches ? "dark" : "light"));
prefersDark.addEventListener("change", () => { if (!remembered.get()) setTheme(prefersDark.matches ? "dark" : "light"); });
function toggleTheme() {
  setTheme(root.dataset.theme === "dark" ? "light" : "dark");
  remembered.set(root.dataset.theme);
}

/* Head of the page. */

function drawSummary() {
  const totals = session.totals();
  const began = new Date(session.header.timestamp || NaN);
  const list = (...parts) => parts.filter(Boolean).flatMap((part, at) => (at ? [make("span", { class: "sep" }, "·"), part] : [part]));
  const count = (number, one, many) => number > 0 && `${number.toLocaleString()} ${number === 1 ? one : many}`;
  const facts = [
    ["Date", [Number.isNaN(began.getTime()) ? "unknown" : began.toLocaleString([], { dateStyle: "long", timeStyle: "short" })]],
    ["Directory", [session.header.cwd || ""]],
    ["Models", [[...totals.models].join(", ") || "none"]],
    ["Messages", list(count(totals.user, "user", "user"), count(totals.assistant, "assistant", "assistant"),
      count(totals.toolResult, "tool result", "tool results"), count(totals.custom, "custom", "custom"),
      count(totals.compaction, "compaction", "compactions"), count(totals.branch, "branch summary", "branch summaries"))],
    ["Tool calls", [totals.calls.toLocaleString()]],
    ["Tokens", list(`↑ ${abbreviate(totals.input)}`, `↓ ${abbreviate(totals.output)}`,
      totals.cacheRead > 0 && `cache read ${abbreviate(totals.cacheRead)}`, totals.cacheWrite > 0 && `cache write ${abbreviate(totals.cacheWrite)}`)],
    ["Cost", [`$${totals.cost.toFixed(3)}`]],
  ];
  const title = session.name || `Session ${String(session.header.id || "").slice(0, 8)}`;
  find("bar-title").textContent = title;
  const button = (words, action, key) => make("button", { type: "button", onclick: action }, words, key ? make("kbd", null, key) : null);
  find("summary").replaceChildren(
    make("h1", null, title),
    make("p", { class: "id" }, `Session ${session.header.id || ""}`),
    make("dl", { class: "facts" }, ...facts.filter(([, value]) => value.length && value[0]).flatMap(([name, value]) => [make("dt", null, name), make("dd", null, ...value)])),
    make("div", { class: "actions" },
      button("Thinking", toggleThinking, "Ctrl+T"),
      button("Tool output", toggleTools, "Ctrl+O"),
      button("Download JSONL", download),
      button("Light / dark", toggleTheme)));
}

function drawSetup() {
  const parts = [];
  if (session.systemPrompt) {
    const prompt = expandable(session.systemPrompt, 10, asText);
    prompt.className = "prompt";
    parts.push(make("h2", null, "System prompt"), prompt);
  }
  if (session.tools.length) {
    parts.push(make("h2", null, `Tools (${session.tools.length})`), make("div", null, ...session.tools.map(toolSpec)));
  }
  find("setup").replaceChildren(...parts);
}

function toolSpec(tool) {
  const schema = tool.parameters || {};
  const required = new Set(Array.isArray(schema.required) ? schema.required : []);
  const about = String(tool.description || "");
  const first = about.split("\n")[0];
  const type = (property) => property.type || (property.enum ? "enum" : property.anyOf ? "any of" : "any");
  const parameters = Object.entries(schema.properties || {}).map(([name, property]) => make("li", null,
    make("code", null, name), make("span", { class: "type" }, String(type(property || {}))),
    required.has(name) ? make("span", { class: "required" }, "required") : null,
    property && property.description ? make("span", { class: "about" }, property.description) : null));
  return make("details", { class: "tool-spec" },
    make("summary", null, make("span", { class: "name" }, tool.name), " ",
      make("span", { class: "about short" }, first.length > 110 ? `${first.slice(0, 110)}…` : first),
      make("span", { class: "about long" }, about)),
    make("ul", { class: "parameters" }, ...(parameters.length ? parameters : [make("li", { class: "note" }, "no parameters")])));
}

/* Conversation. */

function drawConversation() {
  const drawing = ++state.drawing;
  const path = session.pathTo(state.leaf);
  const results = new Map();
  const shownCalls = new Set();
  for (const entry of path) {
    for (const call of toolCalls(entry)) shownCalls.add(call.id);
    if (entry.type === "message" && entry.message && entry.message.role === "toolResult") results.set(entry.message.toolCallId, entry.message);
  }
  const place = find("messages");
  place.replaceChildren();
  // Only what is near the window is laid out, where laying out everything would be felt.
  place.classList.toggle("long", path.length > 400);
  const target = Math.max(path.findIndex((entry) => entry.id === state.target), 0);
  let at = 0;
  // Enough to read at once, the rest while it is read.
  const draw = (upTo) => {
    const nodes = document.createDocumentFragment();
    for (; at < Math.min(upTo, path.length); at += 1) {
      const node = renderEntry(session, path[at], results, shownCalls, copyLink);
      if (node) nodes.append(node);
    }
    place.append(nodes);
    if (at < path.length) setTimeout(() => { if (drawing === state.drawing) draw(at + 150); });
  };
  draw(Math.max(150, target + 50));
  if (!path.length) place.append(make("p", { class: "note" }, "Nothing was said here yet."));
  showTarget();
}

function showTarget() {
  for (const old of document.querySelectorAll(".entry.target")) old.classList.remove("target");
  if (!state.target) return;
  let id = state.target;
  // Results are shown with their call; settings are not shown at all.
  let node = find(`entry-${id}`);
  while (!node && session.byId.has(id)) {
    id = session.byId.get(id).parentId;
    node = find(`entry-${id}`);
  }
  if (!node) return;
  node.classList.add("target");
  // Parts that were not laid out before may have moved it; look again a few times.
  let looks = find("messages").classList.contains("long") ? 6 : 1;
  const scroll = () => {
    node.scrollIntoView({ block: "start" });
    looks -= 1;
    if (looks > 0 && node.classList.contains("target")) requestAnimationFrame(scroll);
  };
  scroll();
}

function goTo(id) {
  const onPath = session.pathTo(state.leaf).some((entry) => entry.id === id);
  state.target = id;
  if (onPath) {
    showTarget();
  } else {
    state.leaf = session.newestLeaf(id);
    drawConversation();
  }
  markTree();
  closeTree();
}

function copyLink(id) {
  const url = new URL(location.href);
  url.search = new URLSearchParams({ leafId: state.leaf, targetId: id }).toString();
  url.hash = "";
  try { history.replaceState(null, "", url); } catch { /* some browsers keep file addresses fixed */ }
  const done = () => toast("Link copied");
  const fail = () => toast(url.href);
  if (navigator.clipboard) navigator.clipboard.writeText(url.href).then(done, fail);
  else fail();
}

/* Tree. */

function treeRows() {
  const words = state.search.toLowerCase().split(/\s+/).filter(Boolean);
  const rows = new Map();
  for (const entry of session.entries) {
    const row = outline(session, entry);
    row.label = session.labels.get(entry.id);
    const text = `${row.label || ""} ${row.who} ${row.text}`.toLowerCase();
    row.shown = Boolean(state.filter[1](row)) && words.every((word) => text.includes(word));
    rows.set(entry.id, row);
  }
  // An entry hangs below the nearest shown one above it.
  const shownBelow = new Map([[null, []]]);
  const stack = (session.children.get(null) || []).map((id) => [id, null]).reverse();
  while (stack.length) {
    const [id, above] = stack.pop();
    const row = rows.get(id);
    if (row.shown) {
      if (!shownBelow.has(above)) shownBelow.set(above, []);
      shownBelow.get(above).push(id);
    }
    const children = session.children.get(id) || [];
    for (let at = children.length - 1; at >= 0; at -= 1) stack.push([children[at], row.shown ? id : above]);
  }
  const out = [];
  const walk = shownBelow.get(null).map((id) => [id, 0, false]).reverse();
  while (walk.length) {
    const [id, depth, fork] = walk.pop();
    out.push([id, rows.get(id), depth, fork]);
    const children = shownBelow.get(id) || [];
    const forks = children.length > 1;
    for (let at = children.length - 1; at >= 0; at -= 1) walk.push([children[at], depth + (forks ? 1 : 0), forks]);
  }
  return out;
}

function drawTree() {
  const place = find("tree");
  const rows = treeRows();
  const path = pathIds();
  const drawing = (drawTree.count = (drawTree.count || 0) + 1);
  place.replaceChildren();
  let at = 0;
  const draw = () => {
    const nodes = document.createDocumentFragment();
    const end = Math.min(at + 400, rows.length);
    for (; at < end; at += 1) {
      const node = treeNode(...rows[at], at === 0);
      markNode(node, path);
      nodes.append(node);
    }
    place.append(nodes);
    if (at < rows.length) setTimeout(() => { if (drawing === drawTree.count) draw(); });
  };
  draw();
  find("tree-status").textContent = `${rows.length.toLocaleString()} of ${session.entries.length.toLocaleString()} entries`;
}

function treeNode(id, row, depth, fork, first) {
  const text = row.text.replace(/\s+/g, " ").trim().slice(0, 160);
  const node = make("div", {
    class: `node ${row.kind}${fork ? " fork" : ""}`, role: "treeitem", tabindex: first ? "0" : "-1",
    "aria-level": String(depth + 1), "data-id": id, title: row.text.slice(0, 400),
  }, row.label ? make("span", { class: "label" }, `[${row.label}]`) : null, row.who ? make("span", { class: "who" }, row.who) : null, text);
  // Through the object model: the policy of this page forbids style attributes.
  node.style.setProperty("--depth", String(Math.min(depth, 12)));
  return node;
}

function pathIds() {
  return new Set(session.pathTo(state.leaf).map((entry) => entry.id));
}

function markNode(node, path) {
  const id = node.dataset.id;
  node.classList.toggle("on-path", path.has(id));
  node.classList.toggle("current", id === (state.target || state.leaf));
  if (id === state.target) node.setAttribute("aria-current", "true");
  else node.removeAttribute("aria-current");
}

function markTree() {
  const path = pathIds();
  for (const node of find("tree").children) markNode(node, path);
}

function focusRow(node) {
  if (!node) return;
  for (const other of find("tree").querySelectorAll('[tabindex="0"]')) other.tabIndex = -1;
  node.tabIndex = 0;
  node.focus();
}

find("tree").addEventListener("click", (event) => {
  const node = event.target.closest(".node");
  if (node) { focusRow(node); goTo(node.dataset.id); }
});
find("tree").addEventListener("keydown", (event) => {
  const node = event.target.closest(".node");
  if (!node) return;
  const rows = { ArrowDown: node.nextElementSibling, ArrowUp: node.previousElementSibling, Home: node.parentNode.firstElementChild, End: node.parentNode.lastElementChild };
  if (event.key in rows) { focusRow(rows[event.key]); event.preventDefault(); }
  if (event.key === "Enter" || event.key === " ") { goTo(node.dataset.id); event.preventDefault(); }
});
find("search").addEventListener("input", (event) => { state.search = event.target.value; drawTree(); });
find("search").addEventListener("keydown", (event) => {
  if (event.key === "ArrowDown") { focusRow(find("tree").firstElementChild); event.preventDefault(); }
});

function drawFilters() {
  const choose = (filter, focus) => {
    state.filter = filter;
    drawFilters();
    drawTree();
    if (focus) find("filters").querySelector('[aria-checked="true"]').focus();
  };
  find("filters").replaceChildren(...FILTERS.map((filter, at) => make("button", {
    type: "button", role: "radio", "aria-checked": String(filter === state.filter), tabindex: filter === state.filter ? "0" : "-1",
    onclick: () => choose(filter),
    onkeydown: (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (step) { choose(FILTERS[(at + step + FILTERS.length) % FILTERS.length], true); event.preventDefault(); }
    },
  }, filter[0])));
}

/* Everything at once, and the keys. */

function toggleThinking() {
  const all = [...document.querySelectorAll("details.thinking")];
  const open = !all.some((block) => block.open);
  for (const block of all) block.open = open;
  toast(open ? "Thinking shown" : "Thinking folded");
}

function toggleTools() {
  const all = [...document.querySelectorAll("#messages .expandable")];
  const open = all.some((box) => box.querySelector(".more").getAttribute("aria-expanded") === "false");
  for (const box of all) box.setOpen(open);
  toast(open ? "Tool output shown" : "Tool output folded");
}

function download() {
  const file = new Blob([session.toJsonl()], { type: "application/x-ndjson" });
  const link = make("a", { href: URL.createObjectURL(file), download: `${session.header.id || "session"}.jsonl` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

function toast(words) {
  const place = find("toast");
  place.textContent = words;
  place.classList.add("shown");
  clearTimeout(toast.timer);
  toast.timer = setTimeout(() => place.classList.remove("shown"), 1600);
}

function closeTree() { document.body.classList.remove("tree-open"); find("menu").setAttribute("aria-expanded", "false"); }
find("menu").addEventListener("click", () => {
  const open = document.body.classList.toggle("tree-open");
  find("menu").setAttribute("aria-expanded", String(open));
});
find("shade").addEventListener("click", closeTree);

document.addEventListener("keydown", (event) => {
  const typing = /^(INPUT|TEXTAREA)$/.test(event.target.tagName);
  const plain = !typing && !event.ctrlKey && !event.metaKey && !event.altKey;
  const control = event.ctrlKey && !event.metaKey && !event.altKey;
  const key = event.key.toLowerCase();
  // Browsers that keep Ctrl+T for themselves still hear the bare key.
  if ((control || plain) && key === "t") { toggleThinking(); event.preventDefault(); }
  else if ((control || plain) && key === "o") { toggleTools(); event.preventDefault(); }
  else if (plain && key === "/") { document.body.classList.add("tree-open"); find("search").focus(); event.preventDefault(); }
  else if (key === "escape") { closeTree(); if (typing) event.target.blur(); }
});

drawSummary();
drawSetup();
drawFilters();
drawTree();
drawConversation();
