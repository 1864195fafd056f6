// Entries of the conversation to document nodes.

const PREVIEW = { bash: 5, other: 10 };

/** Text of which only the first lines are shown until somebody wants all of it. */
function expandable(text, limit, render) {
  const lines = String(text).replace(/\r\n?/g, "\n").replace(/\n+$/, "").split("\n");
  const box = make("div", { class: "output" });
  const pre = make("pre");
  const rest = lines.length - limit;
  const show = (all) => pre.replaceChildren(...render((all ? lines : lines.slice(0, limit)).join("\n")));
  box.append(pre);
  if (rest <= 0) {
    show(true);
    return box;
  }
  const more = make("button", { type: "button", class: "more", "aria-expanded": "false" });
  box.setOpen = (open) => {
    show(open);
    more.textContent = open ? "Show less" : `… ${rest} more ${rest === 1 ? "line" : "lines"}`;
    more.setAttribute("aria-expanded", String(open));
  };
  box.classList.add("expandable");
  more.addEventListener("click", () => box.setOpen(more.getAttribute("aria-expanded") !== "true"));
  box.append(more);
  box.setOpen(false);
  return box;
}

const asText = (text) => [text];

function pictures(images) {
  if (!images.length) return null;
  const types = /^image\/(png|jpeg|gif|webp|avif|bmp)$/;
  return make("div", { class: "pictures" }, ...images.map((image) => types.test(image.mimeType || "")
    ? make("img", { src: `data:${image.mimeType};base64,${image.data}`, alt: "Image in the conversation", loading: "lazy" })
    : make("span", { class: "note" }, `(${image.mimeType || "image"})`)));
}

function thinking(block) {
  if (!block.thinking && !block.redacted) return null;
  const body = block.thinking ? markdown(block.thinking) : make("p", { class: "note" }, "The provider withheld this text.");
  return make("details", { class: "thinking", open: true }, make("summary", null, "Thinking"), body);
}

/** A tool call with its result, if there is one. */
function toolCard(call, result) {
  const args = call.arguments && typeof call.arguments === "object" ? call.arguments : {};
  const state = !result ? "pending" : result.isError ? "error" : "success";
  const text = result ? textOf(result.content) : "";
  const path = pathArgument(args);
  const title = (...parts) => make("div", { class: "call" }, make("span", { class: "name" }, call.name || "tool"), ...parts);
  const aside = (words) => (words ? make("span", { class: "aside" }, words) : null);
  const parts = [];
  let limit = PREVIEW.other;
  let render = asText;
  switch (call.name) {
    case "bash":
      parts.push(make("div", { class: "call" }, make("span", { class: "name" }, "$"), args.command || "", aside(args.timeout && `timeout ${args.timeout}s`)));
      limit = PREVIEW.bash;
      break;
    case "read": {
      const from = args.offset || (args.limit ? 1 : 0);
      const range = from ? `:${from}${args.limit ? `-${from + args.limit - 1}` : ""}` : "";
      parts.push(title(path + range));
      if (state === "success") render = (lines) => highlight(lines, languageOf(path));
      break;
    }
    case "write": {
      const content = String(args.content || "");
      const count = content.split("\n").length;
      parts.push(title(path, aside(count > 10 && `${count} lines`)));
      if (content) parts.push(expandable(content, PREVIEW.other, (lines) => highlight(lines, languageOf(path))));
      break;
    }
    case "edit":
      parts.push(title(path));
      parts.push(editDiff(args, result));
      break;
    default: {
      parts.push(title());
      const shown = JSON.stringify(args, null, 2);
      if (shown !== "{}") parts.push(expandable(shown, PREVIEW.other, (lines) => highlight(lines, "json")));
    }
  }
  const told = call.name === "edit" || call.name === "write" ? state === "error" : true;
  if (text && told) parts.push(expandable(text, limit, render));
  parts.push(result && pictures(imagesOf(result.content)));
  return make("div", { class: `card ${state}` }, ...parts);
}

function editDiff(args, result) {
  const details = (result && result.details) || {};
  let diff = typeof details.diff === "string" ? details.diff : "";
  if (!diff) {
    const edits = Array.isArray(args.edits) ? args.edits : [args];
    const marked = (sign, text) => String(text || "").split("\n").map((line) => sign + line).join("\n");
    diff = edits.filter((edit) => edit && (edit.oldText || edit.newText))
      .map((edit) => `${marked("-", edit.oldText)}\n${marked("+", edit.newText)}`).join("\n...\n");
  }
  if (!diff) return null;
  const box = expandable(diff, 30, diffLines);
  box.classList.add("diff");
  return box;
}

function bashCard(message) {
  const state = message.cancelled || message.exitCode ? "error" : "success";
  const end = message.cancelled ? "(cancelled)" : message.exitCode ? `(exit ${message.exitCode})` : "";
  return make("div", { class: `card ${state}` },
    make("div", { class: "call" }, make("span", { class: "name" }, "$"), message.command || "",
      end && make("span", { class: "aside state" }, end)),
    message.output ? expandable(message.output, PREVIEW.other, asText) : null,
    message.truncated ? make("p", { class: "note call" }, `Output was cut${message.fullOutputPath ? `; all of it was in ${message.fullOutputPath}` : ""}.`) : null);
}

function fold(title, text) {
  return make("details", { class: "fold" }, make("summary", null, title), markdown(text));
}

/** The parts of an assistant message: what it said and thought, then what it did. */
function assistantBody(message, results) {
  const said = [];
  const done = [];
  for (const block of blocksOf(message.content)) {
    if (block.type === "text" && (block.text || "").trim()) said.push(markdown(block.text));
    else if (block.type === "thinking") said.push(thinking(block));
    else if (block.type === "toolCall") done.push(toolCard(block, results.get(block.id)));
  }
  if (message.stopReason === "aborted") done.push(make("p", { class: "failure" }, "Aborted"));
  if (message.stopReason === "error") done.push(make("p", { class: "failure" }, `Error: ${message.errorMessage || "unknown"}`));
  return [...said, ...done];
}

/** The node of one entry, or nothing if there is nothing to see. */
function renderEntry(session, entry, results, shownCalls, link) {
  const message = entry.type === "message" ? entry.message || {} : {};
  const article = (kind, who, ...body) => {
    const time = timeOf(entry);
    const label = session.labels.get(entry.id);
    return make("article", { class: `entry ${kind}`, id: `entry-${entry.id}` },
      make("div", { class: "meta" },
        make("span", { class: "who" }, who),
        time && make("time", { datetime: time.toISOString(), title: time.toLocaleString() }, time.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" })),
        label && make("span", { class: "label" }, `[${label}]`),
        make("button", { type: "button", class: "link", title: "Copy a link to this entry", onclick: () => link(entry.id) }, "Copy link")),
      make("div", { class: "body" }, ...body));
  };
  const custom = (type, content) => article("custom", type || "Custom", pictures(imagesOf(content)), markdown(textOf(content)));
  switch (entry.type) {
    case "message":
      switch (message.role) {
        case "user": return article("user", "User", pictures(imagesOf(message.content)), markdown(textOf(message.content)));
        case "assistant": {
          const body = assistantBody(message, results);
          return body.length ? article("assistant", message.model || "Assistant", ...body) : null;
        }
        case "toolResult":
          if (shownCalls.has(message.toolCallId)) return null;
          return article("assistant", "Tool result", toolCard({ name: message.toolName, arguments: {} }, message));
        case "bashExecution": return article("command", "Command", bashCard(message));
        case "custom": return message.display ? custom(message.customType, message.content) : null;
        default: return null;
      }
    case "custom_message": return entry.display ? custom(entry.customType, entry.content) : null;
    case "compaction":
      return article("custom", "Compaction", fold(`Compacted from ${(entry.tokensBefore || 0).toLocaleString()} tokens`, entry.summary));
    case "branch_summary": return article("custom", "Branch summary", fold("What happened on the branch that was left", entry.summary));
    case "model_change":
      return make("div", { class: "line", id: `entry-${entry.id}` }, `Switched to ${entry.provider}/${entry.modelId}`);
    default: return null;
  }
}
