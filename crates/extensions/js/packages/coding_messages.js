// Conversion of messages for a model, and of a conversation to text.

function describeBash({ command, output, cancelled, exitCode, truncated, fullOutputPath }) {
  let text = `Ran \`${command}\`\n${output ? `\`\`\`\n${output}\n\`\`\`` : "(no output)"}`;
  if (cancelled) text += "\n\n(command cancelled)";
  else if (exitCode !== undefined && exitCode !== null && exitCode !== 0) text += `\n\nCommand exited with code ${exitCode}`;
  if (truncated && fullOutputPath) text += `\n\n[Output truncated. Full output: ${fullOutputPath}]`;
  return text;
}

const said = (text, timestamp) => ({ role: "user", content: [{ type: "text", text }], timestamp });
const summarised = (words, summary) => `${words}\n\n<summary>\n${summary}\n</summary>`;

const CONVERSIONS = {
  user: (message) => message,
  assistant: (message) => message,
  toolResult: (message) => message,
  bashExecution: (message) => (message.excludeFromContext ? undefined : said(describeBash(message), message.timestamp)),
  custom: ({ content, timestamp }) => (typeof content === "string" ? said(content, timestamp) : { role: "user", content, timestamp }),
  compactionSummary: ({ summary, timestamp }) => said(summarised("The earlier part of this conversation was replaced by this summary:", summary), timestamp),
  branchSummary: ({ summary, timestamp }) => said(summarised("This is a summary of a branch of the conversation that was left and returned from:", summary), timestamp),
};

/** Returns the messages that a model accepts; others become user messages or are left out. */
export const convertToLlm = (messages) => messages.map((message) => CONVERSIONS[message.role]?.(message)).filter((message) => message !== undefined);

const RESULT_LIMIT = 2000;
const texts = (content) => (typeof content === "string" ? content : content.filter(({ type }) => type === "text").map(({ text }) => text).join(""));

function shortened(text) {
  return text.length <= RESULT_LIMIT ? text : `${text.slice(0, RESULT_LIMIT)}\n\n[… ${text.length - RESULT_LIMIT} more characters left out]`;
}
const calledWith = ({ name, arguments: members }) => `${name}(${Object.entries(members ?? {}).map(([key, value]) => `${key}=${JSON.stringify(value)}`).join(", ")})`;

/** Returns the messages as text: one paragraph each, without images. */
export function serializeConversation(messages) {
  const parts = [];
  const add = (who, text) => { if (text) parts.push(`[${who}]: ${text}`); };
  for (const message of messages) {
    if (message.role === "user") add("User", texts(message.content));
    else if (message.role === "toolResult") add("Tool result", shortened(texts(message.content)));
    else if (message.role === "assistant") {
      const of = (type) => message.content.filter((block) => block.type === type);
      add("Assistant thinking", of("thinking").map(({ thinking }) => thinking).join("\n"));
      add("Assistant", of("text").map(({ text }) => text).join("\n"));
      add("Assistant tool calls", of("toolCall").map(calledWith).join("; "));
    }
  }
  return parts.join("\n\n");
}

const isTool = (name) => (event) => event.toolName === name;
export const isBashToolResult = isTool("bash");
export const isReadToolResult = isTool("read");
export const isEditToolResult = isTool("edit");
export const isWriteToolResult = isTool("write");
export const isGrepToolResult = isTool("grep");
export const isFindToolResult = isTool("find");
export const isLsToolResult = isTool("ls");
export const isToolCallEventType = (toolName, event) => event.toolName === toolName;

/** Channels by name; a listener that fails does not affect the others. */
export function createEventBus() {
  const listeners = new Map();
  return {
    emit(channel, data) {
      const complain = (error) => console.error(`Event handler error (${channel}):`, error);
      for (const listener of [...(listeners.get(channel) ?? [])]) {
        try { Promise.resolve(listener(data)).catch(complain); } catch (error) { complain(error); }
      }
    },
    on(channel, listener) {
      const set = listeners.get(channel) ?? new Set();
      listeners.set(channel, set.add(listener));
      return () => set.delete(listener);
    },
    clear: () => listeners.clear(),
  };
}
