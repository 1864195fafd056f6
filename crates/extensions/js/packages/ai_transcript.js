// System messages of a transcript: the prompt, its sections and the declared tools over time.

const isSystem = ({ role }) => role === "system";
const hasText = (text) => text !== undefined && text !== null && text.length > 0;

/** Returns the text of a message's content. */
export function contentText(content, separator = "\n") {
  if (typeof content === "string") return content;
  return content.filter(({ type }) => type === "text").map(({ text }) => text).join(separator);
}

/** Returns the whole prompt of a system message: its content, then its sections. */
export const getSystemMessageText = ({ content, sections = {} }) =>
  [contentText(content), ...Object.values(sections)].filter(hasText).join("\n\n");

/** Returns a later system message as text for a model that accepts it in the middle of a conversation. */
export function renderSystemMessageUpdate({ content, sections = {} }) {
  const changes = Object.entries(sections).map(([name, text]) =>
    (text === null ? `Removed system prompt section "${name}".` : `Updated system prompt section "${name}":\n\n${text}`));
  return [contentText(content), ...changes].filter(hasText).join("\n\n");
}

export function createInitialSystemMessage(systemPrompt, tools) {
  const declares = tools !== undefined && tools.length > 0;
  if (!hasText(systemPrompt) && !declares) return undefined;
  const message = { role: "system", content: systemPrompt ?? "" };
  if (declares) message.toolsAdded = tools;
  message.timestamp = 0;
  return message;
}

/** Moves the prompt and the tools of a context into a leading system message. */
export function normalizeContext({ systemPrompt, tools, messages }) {
  const initial = createInitialSystemMessage(systemPrompt, tools);
  return { messages: initial ? [initial, ...messages] : messages };
}

export const getInitialSystemMessage = ([first]) => (first && isSystem(first) ? first : undefined);
export const withoutInitialSystemMessage = (messages) => (getInitialSystemMessage(messages) ? messages.slice(1) : messages);

/** Returns the tools that are declared after the last message. */
export function getCurrentTools(messages) {
  const tools = new Map();
  for (const { toolsRemoved = [], toolsAdded = [] } of messages.filter(isSystem)) {
    for (const { name } of toolsRemoved) tools.delete(name);
    for (const tool of toolsAdded) tools.set(tool.name, tool);
  }
  return [...tools.values()];
}

/** Returns one system message with the effect of all of them. */
export function getCurrentSystemMessage(messages) {
  const all = messages.filter(isSystem);
  if (all.length === 0) return undefined;
  const sections = {};
  for (const [name, text] of all.flatMap((message) => Object.entries(message.sections ?? {}))) {
    if (text === null) delete sections[name]; else sections[name] = text;
  }
  const tools = getCurrentTools(all);
  const message = { role: "system", content: all.map(({ content }) => contentText(content)).filter(hasText).join("\n\n") };
  if (Object.keys(sections).length > 0) message.sections = sections;
  if (tools.length > 0) message.toolsAdded = tools;
  message.timestamp = all[0].timestamp ?? 0;
  return message;
}

export function getCurrentSystemPrompt(messages) {
  const message = getCurrentSystemMessage(messages);
  return message ? getSystemMessageText(message) : "";
}

export function collapseSystemMessages({ messages }) {
  const head = getCurrentSystemMessage(messages);
  const rest = messages.filter((message) => !isSystem(message));
  return { messages: head ? [head, ...rest] : rest };
}
export const resolveTranscript = (context, supportsLaterSystemMessages) =>
  (supportsLaterSystemMessages ? context : collapseSystemMessages(context));

/** Returns the part of a tool that a model sees, as plain JSON. */
export function toToolDeclaration({ name, description, parameters, constrainedSampling }) {
  const declaration = { name, description, parameters: JSON.parse(JSON.stringify(parameters)) };
  return constrainedSampling === undefined ? declaration : { ...declaration, constrainedSampling };
}
export const declarationsEqual = (left, right) =>
  JSON.stringify(toToolDeclaration(left)) === JSON.stringify(toToolDeclaration(right));

/** Compares two lists of tools. A changed tool is removed and added. */
export function getToolStateChanges(previous, current) {
  const lacks = (tools) => {
    const known = new Map(tools.map((tool) => [tool.name, tool]));
    return (tool) => !known.has(tool.name) || !declarationsEqual(known.get(tool.name), tool);
  };
  return {
    toolsAdded: current.filter(lacks(previous)).map(toToolDeclaration),
    toolsRemoved: previous.filter(lacks(current)).map(({ name }) => ({ name })),
  };
}

const allAdded = (messages) => messages.filter(isSystem).flatMap(({ toolsAdded = [] }) => toolsAdded);

export const getDeclaredTools = (messages) => [...new Map(allAdded(messages).map((tool) => [tool.name, tool])).values()];

export function hasToolRedefinitions(messages) {
  const known = new Map();
  return allAdded(messages).some((tool) => {
    const before = known.get(tool.name);
    known.set(tool.name, tool);
    return before !== undefined && !declarationsEqual(before, tool);
  });
}

/** Returns the position of the last system message that removes a tool or declares one again; -1 if there is none. */
function lastChange(systemMessages) {
  const known = new Set();
  let last = -1;
  for (const [at, { toolsRemoved = [], toolsAdded = [] }] of systemMessages.entries()) {
    if (toolsRemoved.length > 0 || toolsAdded.some(({ name }) => known.has(name))) last = at;
    for (const { name } of toolsAdded) known.add(name);
  }
  return last;
}
export const hasNonAdditiveToolChanges = (messages) => lastChange(messages.filter(isSystem)) >= 0;

/** Divides declared tools between the request itself and its messages, by what the API supports. */
export function resolveTranscriptTools(messages, support) {
  const all = messages.filter(isSystem);
  if (support === "changes") return { requestTools: [], foldedSystemMessages: 0 };
  const folded = support === "none" ? all.length : Math.max(getInitialSystemMessage(messages) ? 1 : 0, lastChange(all) + 1);
  return { requestTools: getCurrentTools(all.slice(0, folded)), foldedSystemMessages: folded };
}
