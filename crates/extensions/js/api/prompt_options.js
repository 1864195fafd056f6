// The start of a run: the parts of its system prompt, and the messages that handlers add.

import { home, now } from "pinion:api/bridge";
import { each } from "pinion:api/handlers";
import { withLater } from "pinion:api/program";

/** The members that every release has, in the order in which they are listed. */
const MEMBERS = [
  "cwd",
  "skills",
  "contextFiles",
  "customPrompt",
  "appendSystemPrompt",
  "selectedTools",
  "toolSnippets",
  "promptGuidelines",
];

/** Returns the parts of the system prompt with every member that extensions may read or change. */
export function fullPromptOptions(options) {
  const full = {};
  for (const name of MEMBERS) full[name] = options?.[name] ?? undefined;
  full.selectedTools ??= [];
  full.toolSnippets ??= {};
  full.promptGuidelines ??= [];
  full.skills ??= [];
  full.contextFiles ??= [];
  const toolGuidelines = options?.toolGuidelines ?? {};
  return withLater(full, { forceSystemPrompt: undefined, hiddenTools: [], toolGuidelines, sections: {} });
}

// Hidden members count too.
const LATER = ["forceSystemPrompt", "hiddenTools", "toolGuidelines", "sections"];
const plain = (options) => Object.fromEntries([...MEMBERS, ...LATER].map((name) => [name, options[name]]));

/** Composes the system prompt of options that handlers may have changed. */
class Composer {
  #options;
  #base;
  #last;
  forced;

  constructor(options, prompt) {
    this.#options = options;
    this.#base = prompt;
    this.#last = { key: JSON.stringify(plain(options)), prompt };
  }

  /** Returns the prompt as it is now. */
  prompt() {
    if (this.forced !== undefined) return this.forced;
    const given = plain(this.#options);
    if (typeof given.forceSystemPrompt === "string") return given.forceSystemPrompt;
    const key = JSON.stringify(given);
    if (key !== this.#last.key) this.#last = { key, prompt: now(home, "composePrompt", given) };
    return this.#last.prompt;
  }

  /** Returns the prompt if it differs from the one that the run would have had. */
  changed() {
    const prompt = this.prompt();
    return prompt === this.#base ? undefined : prompt;
  }
}

/** Reports a message that is about to start a run. */
export async function beforeRun(work, given) {
  const options = fullPromptOptions(given.systemPromptOptions);
  const selected = JSON.stringify(options.selectedTools);
  const composer = new Composer(options, given.systemPrompt);
  const messages = [];
  const makeEvent = () => {
    const event = { type: "before_agent_start" };
    if (!given.message) Object.assign(event, { prompt: given.prompt, images: given.images ?? undefined });
    Object.assign(event, { systemPrompt: composer.prompt(), systemPromptOptions: options });
    return withLater(event, given.message ? { messageType: "custom", message: given.message } : { messageType: "user" });
  };
  const take = (result) => {
    if (result?.message) messages.push(result.message);
    if (result?.systemPrompt !== undefined) composer.forced = result.systemPrompt;
  };
  await each(work, "before_agent_start", makeEvent, take, () => composer.prompt());
  return {
    messages,
    systemPrompt: composer.changed(),
    activeTools: JSON.stringify(options.selectedTools) === selected ? undefined : names(options.selectedTools),
    hiddenTools: names(options.hiddenTools),
  };
}

const names = (given) => (Array.isArray(given) ? given.map(String) : []);
