// Markdown to document nodes. Text only ever becomes text: there is no raw HTML, and nothing is loaded.

function make(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "class") node.className = value;
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return node;
}

function markdown(text) {
  return make("div", { class: "md" }, ...blocks(String(text || "").replace(/\r\n?/g, "\n").split("\n"), 0));
}

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([^`]*)$/;
const HEADING = /^ {0,3}(#{1,6})(?:\s+(.*?))?(?:\s+#+)?\s*$/;
const RULE = /^ {0,3}(?:(?:\*\s*){3,}|(?:-\s*){3,}|(?:_\s*){3,})$/;
const ITEM = /^( *)([-*+]|\d{1,9}[.)])(?:\s+(.*)|)$/;
const QUOTE = /^ {0,3}> ?(.*)$/;
const UNDERLINE = /^ {0,3}=+\s*$/;
const TABLE_RULE = /^ *\|? *:?-+:? *(?:\| *:?-+:? *)*\|? *$/;

function blocks(lines, depth) {
  const out = [];
  let at = 0;
  while (at < lines.length) {
    const line = lines[at];
    let match;
    if (!line.trim()) {
      at += 1;
    } else if ((match = FENCE.exec(line))) {
      const close = new RegExp(`^ {0,3}${match[1][0]}{${match[1].length},}\\s*$`);
      let end = at + 1;
      while (end < lines.length && !close.test(lines[end])) end += 1;
      out.push(codeBlock(lines.slice(at + 1, end).join("\n"), match[2].trim().split(/\s/)[0]));
      at = end + 1;
    } else if ((match = HEADING.exec(line))) {
      out.push(make(`h${match[1].length}`, null, ...inline(match[2] || "")));
      at += 1;
    } else if (RULE.test(line)) {
      out.push(make("hr"));
      at += 1;
    } else if (QUOTE.test(line) && depth < 12) {
      let end = at;
      const inner = [];
      while (end < lines.length && lines[end].trim() && (QUOTE.test(lines[end]) || !startsBlock(lines[end]))) {
        const quoted = QUOTE.exec(lines[end]);
        inner.push(quoted ? quoted[1] : lines[end]);
        end += 1;
      }
      out.push(make("blockquote", null, ...blocks(inner, depth + 1)));
      at = end;
    } else if (ITEM.test(line) && depth < 12) {
      const [list, end] = listFrom(lines, at, depth);
      out.push(list);
      at = end;
    } else if (line.includes("|") && at + 1 < lines.length && TABLE_RULE.test(lines[at + 1]) && lines[at + 1].includes("-")) {
      let end = at + 2;
      while (end < lines.length && lines[end].trim() && lines[end].includes("|")) end += 1;
      out.push(table(lines.slice(at, end)));
      at = end;
    } else {
      let end = at + 1;
      while (end < lines.length && lines[end].trim() && !startsBlock(lines[end]) && !UNDERLINE.test(lines[end])) end += 1;
      if (end < lines.length && UNDERLINE.test(lines[end])) {
        out.push(make("h1", null, ...inline(lines.slice(at, end).join(" ").trim())));
        at = end + 1;
        continue;
      }
      out.push(make("p", null, ...inline(lines.slice(at, end).map((part) => part.trimStart()).join("\n"))));
      at = end;
    }
  }
  return out;
}

function startsBlock(line) {
  return FENCE.test(line) || HEADING.test(line) || RULE.test(line) || QUOTE.test(line) || ITEM.test(line);
}

function listFrom(lines, at, depth) {
  const first = ITEM.exec(lines[at]);
  const indent = first[1].length;
  const ordered = /\d/.test(first[2]);
  const start = ordered ? parseInt(first[2], 10) : 1;
  const list = make(ordered ? "ol" : "ul", { start: ordered && start !== 1 ? String(start) : null });
  while (at < lines.length) {
    const match = ITEM.exec(lines[at]);
    if (!match || match[1].length > indent + 3 || match[1].length < indent || /\d/.test(match[2]) !== ordered) break;
    const inner = [match[3] || ""];
    const content = match[1].length + match[2].length + 1;
    at += 1;
    while (at < lines.length) {
      const line = lines[at];
      const pad = line.length - line.trimStart().length;
      if (!line.trim()) {
        const next = lines[at + 1];
        if (next === undefined || !next.trim() || next.length - next.trimStart().length < Math.min(content, indent + 2)) break;
        inner.push("");
      } else if (pad >= Math.min(content, indent + 2)) {
        inner.push(line.slice(Math.min(pad, content)));
      } else if (!startsBlock(line) && inner[inner.length - 1] !== "") {
        inner.push(line.trimStart());
      } else {
        break;
      }
      at += 1;
    }
    list.append(listItem(inner, depth));
    while (at < lines.length && !lines[at].trim() && ITEM.test(lines[at + 1] || "")) at += 1;
  }
  return [list, at];
}

function listItem(inner, depth) {
  const task = /^\[([ xX])\]\s+(.*)$/.exec(inner[0]);
  if (task) inner[0] = task[2];
  const content = blocks(inner, depth + 1);
  // The first paragraph of an item stands on the line of its bullet.
  const lead = content.length && content[0].tagName === "P" ? [...content.shift().childNodes] : [];
  const box = task && make("input", { type: "checkbox", disabled: true, checked: task[1] !== " ", "aria-label": task[1] === " " ? "open" : "done" });
  return make("li", { class: task ? "task" : null }, box, ...lead, ...content);
}

function table(lines) {
  const cells = (line) => {
    const out = [];
    let cell = "";
    const text = line.trim().replace(/^\|/, "").replace(/\|$/, "");
    for (let at = 0; at < text.length; at += 1) {
      if (text[at] === "\\" && text[at + 1] === "|") { cell += "|"; at += 1; }
      else if (text[at] === "|") { out.push(cell.trim()); cell = ""; }
      else cell += text[at];
    }
    out.push(cell.trim());
    return out;
  };
  const head = cells(lines[0]);
  const row = (tag, texts) => make("tr", null, ...head.map((_, at) => make(tag, null, ...inline(texts[at] || ""))));
  return make("div", { class: "table" }, make("table", null,
    make("thead", null, row("th", head)),
    make("tbody", null, ...lines.slice(2).map((line) => row("td", cells(line))))));
}

function codeBlock(text, language) {
  return make("pre", null, make("code", null, ...highlight(text, language)));
}

/** A link that cannot run anything; other schemes stay text. */
function safeLink(target) {
  return /^(https?:|mailto:)/i.test(target) ? target : null;
}

const INLINE = /(`+)([^`]|[^`][\s\S]{0,4000}?[^`])\1(?!`)|\\([\\`*_{}\[\]()#+\-.!|>~])|!?\[((?:[^\[\]\\]|\\.){0,1000})\]\(\s*<?([^\s<>()]*(?:\([^\s()]*\)[^\s<>()]*)*)>?(?:\s+"[^"]*")?\s*\)|<(https?:\/\/[^\s<>]+)>|(https?:\/\/[^\s<>"'`]*[^\s<>"'`.,;:!?)\]}*_])|(\*\*|__)(?=\S)([\s\S]{0,4000}?\S)\8(?!\w)|(\*|_)(?=[^\s*_])([\s\S]{0,4000}?[^\s*_])\10(?![\w*])|~~(?=\S)([\s\S]{0,4000}?\S)~~|( {2,}\n)/;

function inline(text, depth = 0) {
  const out = [];
  while (text) {
    const match = depth > 8 ? null : INLINE.exec(text);
    if (!match) {
      out.push(text);
      break;
    }
    const before = text.slice(0, match.index);
    const mark = match[8] || match[10];
    if (mark && /\w$/.test(before)) {
      // Inside a word these are just characters: 2*3*4, snake_case.
      out.push(before + mark);
      text = text.slice(match.index + mark.length);
      continue;
    }
    if (before) out.push(before);
    out.push(inlineNode(match, depth));
    text = text.slice(match.index + match[0].length);
  }
  return out;
}

function inlineNode(match, depth) {
  const anchor = (target, children) => make("a", { href: target, target: "_blank", rel: "noopener noreferrer" }, ...children);
  if (match[1]) return make("code", null, match[2].replace(/^ (.*\S.*) $/, "$1"));
  if (match[3]) return match[3];
  if (match[5] !== undefined) {
    const target = safeLink(match[5]);
    const label = match[4] || match[5];
    if (match[0].startsWith("!")) return target ? anchor(target, [`🖼 ${label}`]) : `🖼 ${label}`;
    return target ? anchor(target, inline(label, depth + 1)) : make("span", null, ...inline(label, depth + 1));
  }
  if (match[6] || match[7]) return anchor(match[6] || match[7], [match[6] || match[7]]);
  if (match[8]) return make("strong", null, ...inline(match[9], depth + 1));
  if (match[10]) return make("em", null, ...inline(match[11], depth + 1));
  if (match[12]) return make("del", null, ...inline(match[12], depth + 1));
  return make("br");
}
