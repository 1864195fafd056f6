// The ends of a turn and of a run, where handlers may append entries to the session and request another turn.

import { home, now } from "pinion:api/bridge";
import { each, report } from "pinion:api/handlers";
import { withLater } from "pinion:api/program";
import { lazy } from "pinion:runtime/lazy";

const isText = (value) => typeof value === "string";
const isContent = (value) => isText(value) || Array.isArray(value);

/** The kinds of entries that handlers may append, and the check of each. */
const KINDS = {
  custom: (draft) => isText(draft.customType),
  custom_message: (draft) => isText(draft.customType) && isContent(draft.content),
  context_edit: (draft) =>
    isText(draft.targetId) && (draft.replacement === null || isContent(draft.replacement?.content)),
  compaction: (draft) => isText(draft.summary) && (draft.firstKeptEntryId === null || isText(draft.firstKeptEntryId)),
};

function checked(drafts) {
  for (const draft of drafts) {
    const known = Object.hasOwn(KINDS, draft?.type) ? KINDS[draft.type] : undefined;
    if (!known?.(draft)) {
      const kinds = Object.keys(KINDS).join(", ");
      throw new Error(`Invalid entry ${JSON.stringify(draft)}. Return complete entries of these types: ${kinds}`);
    }
  }
  return [...drafts];
}

/** Reports a boundary. Returns the entries to append, and whether handlers request another turn. */
export async function boundary(work, given) {
  const { later, ...members } = given;
  for (const result of members.toolResults ?? []) {
    if (!("details" in result)) result.details = undefined;
  }
  let entries = [];
  let again = false;
  const makeEvent = () => {
    const proposed = entries;
    let context;
    return withLater(
      { ...members },
      {
        ...later,
        ...(given.type === "turn_end" ? entryIds() : {}),
        entries: [...proposed],
        continue: again,
        get context() {
          return (context ??= contextWith(proposed));
        },
      },
    );
  };
  const take = (result) => {
    if (Array.isArray(result?.entries)) entries = checked(result.entries);
    if (typeof result?.continue === "boolean") again = result.continue;
  };
  await each(work, given.type, makeEvent, take);
  if (again && !contextWith(entries).canContinue) {
    report("<boundary>", given.type, `${given.type} requested continuation without runnable model context`);
    again = false;
  }
  return { entries, continue: again };
}

// The ids of the newest answer and of the results of its calls.
function entryIds() {
  const { answer, results } = now(home, "session", "turn") ?? {};
  return { messageEntryId: answer, toolResultEntryIds: results ?? [] };
}

/** Returns the context of the next request as it would be with `drafts`. */
function contextWith(drafts) {
  const { messages } = now(home, "session", "context");
  let entries = withSources(messages, now(home, "session", "branch"));
  for (const draft of drafts) entries = applied(entries, draft);
  const contextMessages = entries.flatMap((entry) => entry.messages);
  const llmMessages = lazy("packages/coding_messages").convertToLlm(contextMessages);
  const pendingMessages = now(home, "pendingMessages");
  const last = llmMessages.at(-1)?.role;
  const waits = llmMessages.some(({ role }) => role !== "system") && last !== "assistant";
  const canContinue = waits || pendingMessages.length > 0;
  return { contextEntries: entries, contextMessages, llmMessages, pendingMessages, canContinue };
}

// Pairs each message with the entry that it comes from, beginning with the newest.
function withSources(messages, branch) {
  const paired = [];
  let at = messages.length - 1;
  for (const entry of branch.reverse()) {
    if (at < 0) break;
    if (!stems(messages[at], entry)) continue;
    paired.unshift({ sourceEntry: entry, messages: [messages[at]] });
    at -= 1;
  }
  // What is left stands for entries that a summary replaced.
  const rest = messages.slice(0, at + 1).map((message) => ({ sourceEntry: undefined, messages: [message] }));
  return [...rest, ...paired];
}

function stems(message, entry) {
  if (entry.type === "custom_message") {
    return message.role === "custom" && Date.parse(entry.timestamp) === message.timestamp;
  }
  const stored = entry.type === "message" ? entry.message : undefined;
  return stored !== undefined && stored.role === message.role && stored.timestamp === message.timestamp;
}

function applied(entries, draft) {
  switch (draft.type) {
    case "custom_message": {
      const { customType, content, display, details } = draft;
      const message = { role: "custom", customType, content, display: Boolean(display), details, timestamp: Date.now() };
      return [...entries, { sourceEntry: draft, messages: [message] }];
    }
    case "context_edit":
      return entries.flatMap((entry) => (entry.sourceEntry?.id === draft.targetId ? edited(entry, draft) : [entry]));
    case "compaction": {
      const kept = entries.findIndex((entry) => entry.sourceEntry?.id === draft.firstKeptEntryId);
      const message = { role: "compactionSummary", summary: draft.summary, tokensBefore: 0, timestamp: Date.now() };
      return [{ sourceEntry: draft, messages: [message] }, ...(kept < 0 ? [] : entries.slice(kept))];
    }
    default:
      return entries;
  }
}

function edited(entry, { replacement }) {
  if (replacement === null) return [];
  return [{ ...entry, messages: entry.messages.map((message) => ({ ...message, content: replacement.content })) }];
}
