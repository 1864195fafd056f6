// The size of a conversation, the points where it may be cut, and summaries of the rest.

import { completeSimple } from "pinion:packages/ai_stream";
import { convertToLlm, serializeConversation } from "pinion:packages/coding_messages";

export const DEFAULT_COMPACTION_SETTINGS = { enabled: true, reserveTokens: 16384, keepRecentTokens: 20000 };
const CHARACTERS_PER_TOKEN = 4;
const IMAGE_CHARACTERS = 4800;

export const calculateContextTokens = (usage) => usage.totalTokens || usage.input + usage.output + usage.cacheRead + usage.cacheWrite;
export const shouldCompact = (tokens, contextWindow, settings) => settings.enabled && tokens > contextWindow - settings.reserveTokens;

export function getLastAssistantUsage(entries) {
  for (const { type, message } of [...entries].reverse()) {
    if (type === "message" && message.role === "assistant" && message.usage && !["aborted", "error"].includes(message.stopReason)) return message.usage;
  }
  return undefined;
}

function blockSize(block) {
  switch (block.type) {
    case "text": return block.text.length;
    case "thinking": return block.thinking.length;
    case "toolCall": return block.name.length + JSON.stringify(block.arguments).length;
    case "image": return IMAGE_CHARACTERS;
    default: return 0;
  }
}

export function estimateTokens(message) {
  const { content } = message;
  let size = 0;
  if (typeof content === "string") size = content.length;
  else if (Array.isArray(content)) size = content.reduce((sum, block) => sum + blockSize(block), 0);
  else if (message.role === "bashExecution") size = message.command.length + message.output.length;
  else if (typeof message.summary === "string") size = message.summary.length;
  return Math.ceil(size / CHARACTERS_PER_TOKEN);
}

/** Returns the message of an entry in the conversation, if it has one. */
export function messageOf(entry) {
  switch (entry.type) {
    case "message": return entry.message;
    case "custom_message": return { role: "custom", customType: entry.customType, content: entry.content, display: entry.display, details: entry.details, timestamp: Date.parse(entry.timestamp) };
    case "branch_summary": return { role: "branchSummary", summary: entry.summary, fromId: entry.fromId, timestamp: Date.parse(entry.timestamp) };
    case "compaction": return { role: "compactionSummary", summary: entry.summary, tokensBefore: entry.tokensBefore, timestamp: Date.parse(entry.timestamp) };
    default: return undefined;
  }
}

const beginsTurn = (entry) => entry.type === "branch_summary" || entry.type === "custom_message"
  || (entry.type === "message" && ["user", "bashExecution"].includes(entry.message.role));
/** Reports whether the conversation may be cut before an entry: a tool result must stay with its call. */
const mayBeFirst = (entry) => beginsTurn(entry) || (entry.type === "message" && entry.message.role !== "toolResult");

export function findTurnStartIndex(entries, entryIndex, startIndex) {
  for (let at = entryIndex; at >= startIndex; at -= 1) if (beginsTurn(entries[at])) return at;
  return -1;
}

/** Finds the first entry to retain so that about `keepRecentTokens` stay. */
export function findCutPoint(entries, startIndex, endIndex, keepRecentTokens) {
  let first = -1;
  for (let at = startIndex; at < endIndex && first < 0; at += 1) if (mayBeFirst(entries[at])) first = at;
  if (first < 0) return { firstKeptEntryIndex: startIndex, turnStartIndex: -1, isSplitTurn: false };
  let cut = first;
  let kept = 0;
  for (let at = endIndex - 1; at >= startIndex; at -= 1) {
    if (entries[at].type !== "message") continue;
    kept += estimateTokens(entries[at].message);
    if (kept < keepRecentTokens) continue;
    for (let next = at; next < endIndex; next += 1) if (mayBeFirst(entries[next])) { cut = next; break; }
    break;
  }
  while (cut > startIndex && !["message", "compaction"].includes(entries[cut - 1].type)) cut -= 1;
  const isUser = entries[cut].type === "message" && entries[cut].message.role === "user";
  const turnStartIndex = isUser ? -1 : findTurnStartIndex(entries, cut, startIndex);
  return { firstKeptEntryIndex: cut, turnStartIndex, isSplitTurn: !isUser && turnStartIndex >= 0 };
}

const ROLE = "You write summaries of conversations between a user and a coding agent. You read the conversation you are given and write the summary you are asked for, and nothing else. You do not continue the conversation and you do not answer questions found in it.";
const FORM = "Use these sections: ## Goal, ## Constraints & Preferences, ## Progress (### Done, ### In Progress, ### Blocked), ## Key Decisions, ## Next Steps, ## Critical Context. Be brief. Keep file paths, names of functions and error messages exactly as they are.";

async function asked(model, prompt, maxTokens, apiKey, headers, signal, thinkingLevel) {
  const reasoning = model.reasoning && thinkingLevel && thinkingLevel !== "off" ? thinkingLevel : undefined;
  const messages = [{ role: "user", content: [{ type: "text", text: prompt }], timestamp: Date.now() }];
  const answer = await completeSimple(model, { systemPrompt: ROLE, messages }, { maxTokens, signal, apiKey, headers, reasoning });
  if (answer.stopReason === "error") throw new Error(`Summarization failed: ${answer.errorMessage || "Unknown error"}`);
  if (answer.stopReason === "aborted") throw new Error("Summarization aborted");
  return answer.content.filter(({ type }) => type === "text").map(({ text }) => text).join("\n");
}

const conversation = (messages) => `<conversation>\n${serializeConversation(convertToLlm(messages))}\n</conversation>\n\n`;

export function generateSummary(messages, model, reserveTokens, apiKey, headers, signal, customInstructions, previousSummary, thinkingLevel) {
  const task = previousSummary
    ? `<previous-summary>\n${previousSummary}\n</previous-summary>\n\nThe conversation above goes on where the previous summary ends. Bring the summary up to date.`
    : "Summarise the conversation above so that another model can take over the work from the summary alone.";
  const focus = customInstructions ? `\n\nAdditional focus: ${customInstructions}` : "";
  return asked(model, `${conversation(messages)}${task}\n\n${FORM}${focus}`, Math.floor(0.8 * reserveTokens), apiKey, headers, signal, thinkingLevel);
}

function noteFiles(message, fileOps) {
  if (message.role !== "assistant") return;
  for (const { type, name, arguments: given } of message.content) {
    if (type !== "toolCall" || typeof given?.path !== "string") continue;
    ({ read: fileOps.read, write: fileOps.written, edit: fileOps.edited })[name]?.add(given.path);
  }
}
function fileLists({ read, written, edited }) {
  const modifiedFiles = [...new Set([...written, ...edited])].sort();
  return { readFiles: [...read].filter((path) => !modifiedFiles.includes(path)).sort(), modifiedFiles };
}
function fileNotes({ readFiles, modifiedFiles }) {
  const part = (tag, files) => (files.length > 0 ? `\n\n<${tag}>\n${files.join("\n")}\n</${tag}>` : "");
  return part("read-files", readFiles) + part("modified-files", modifiedFiles);
}

export async function compact(preparation, model, apiKey, headers, customInstructions, signal, thinkingLevel) {
  const { firstKeptEntryId, messagesToSummarize, turnPrefixMessages, isSplitTurn, tokensBefore, previousSummary, fileOps, settings } = preparation;
  const history = messagesToSummarize.length > 0 || !isSplitTurn
    ? await generateSummary(messagesToSummarize, model, settings.reserveTokens, apiKey, headers, signal, customInstructions, previousSummary, thinkingLevel)
    : "No prior history.";
  let summary = history;
  if (isSplitTurn && turnPrefixMessages.length > 0) {
    const task = "This is the beginning of one long turn. Its end is kept as it is. Summarise the beginning so that the end can be understood. Be brief.";
    const prefix = await asked(model, conversation(turnPrefixMessages) + task, Math.floor(0.5 * settings.reserveTokens), apiKey, headers, signal, thinkingLevel);
    summary = `${history}\n\n---\n\n**Turn Context (split turn):**\n\n${prefix}`;
  }
  const details = fileLists(fileOps);
  return { summary: summary + fileNotes(details), firstKeptEntryId, tokensBefore, details };
}

/** Returns the entries that are left behind when the session moves from one entry to another. */
export function collectEntriesForBranchSummary(session, oldLeafId, targetId) {
  if (!oldLeafId) return { entries: [], commonAncestorId: null };
  const old = session.getBranch(oldLeafId);
  const target = new Set(session.getBranch(targetId).map(({ id }) => id));
  const at = old.findLastIndex(({ id }) => target.has(id));
  return { entries: old.slice(at + 1), commonAncestorId: at < 0 ? null : old[at].id };
}

export function prepareBranchEntries(entries, tokenBudget = 0) {
  const fileOps = { read: new Set(), written: new Set(), edited: new Set() };
  const messages = [];
  let totalTokens = 0;
  for (const entry of entries) {
    if (entry.type !== "branch_summary" || entry.fromHook) continue;
    for (const path of entry.details?.readFiles ?? []) fileOps.read.add(path);
    for (const path of entry.details?.modifiedFiles ?? []) fileOps.edited.add(path);
  }
  for (const entry of [...entries].reverse()) {
    const message = messageOf(entry);
    if (!message || message.role === "toolResult") continue;
    noteFiles(message, fileOps);
    const tokens = estimateTokens(message);
    if (tokenBudget > 0 && totalTokens + tokens > tokenBudget) break;
    messages.unshift(message);
    totalTokens += tokens;
  }
  return { messages, fileOps, totalTokens };
}

export async function generateBranchSummary(entries, options) {
  const { model, apiKey, headers, signal, customInstructions, replaceInstructions, reserveTokens = DEFAULT_COMPACTION_SETTINGS.reserveTokens } = options;
  const { messages, fileOps } = prepareBranchEntries(entries, (model.contextWindow || 128000) - reserveTokens);
  if (messages.length === 0) return { summary: "No content to summarize" };
  const task = "Summarise this branch of a conversation. The user returns to an earlier point and may need to know what was tried here and what came of it.";
  const words = replaceInstructions && customInstructions ? customInstructions : `${task}\n\n${FORM}${customInstructions ? `\n\nAdditional focus: ${customInstructions}` : ""}`;
  try {
    const summary = await asked(model, conversation(messages) + words, 2048, apiKey, headers, signal);
    const files = fileLists(fileOps);
    return { summary: summary + fileNotes(files), ...files };
  } catch (error) {
    return signal?.aborted ? { aborted: true } : { error: error.message };
  }
}
