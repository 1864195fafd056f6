// The context of command handlers: everything a context has, and the functions that change the session.

import { home, later, now, requireFresh } from "pinion:api/bridge";
import { makeContext, newScope } from "pinion:api/context";
import { pausing } from "pinion:api/patience";
import { withLater } from "pinion:api/program";
import { writableSession } from "pinion:api/session_view";
import { lazy } from "pinion:runtime/lazy";

const setups = new Map();
let setupCount = 0;

/** Creates the context of a command handler. */
export function makeCommandContext(scope) {
  const { seat } = scope;
  const ctx = makeContext(scope);
  const act = async (method, ...values) => {
    requireFresh(seat);
    return pausing(scope.extension, () => later(seat, method, ...values));
  };
  const replace = async (outcome, withSession) => {
    const { cancelled, generation } = await outcome;
    if (!cancelled && withSession) await withSession(replacedContext(scope, generation));
    return { cancelled };
  };
  Object.assign(ctx, {
    waitForIdle: async () => {
      await lazy("api/saying").allBegun();
      await act("waitForIdle");
    },
    newSession: async (options = {}) => {
      const setup = keepSetup(options.setup);
      try {
        const outcome = act("newSession", { parentSession: options.parentSession, setup });
        return await replace(outcome, options.withSession);
      } finally {
        setups.delete(setup);
      }
    },
    fork: (entryId, options = {}) => {
      const outcome = act("fork", { entryId, position: options.position ?? "before" });
      return replace(outcome, options.withSession);
    },
    navigateTree: async (targetId, options = {}) => {
      const { cancelled } = await act("navigateTree", { targetId, ...options });
      return { cancelled };
    },
    switchSession: (path, options = {}) => replace(act("switchSession", { path }), options.withSession),
    reload: () => act("reload").then(() => undefined),
  });
  return withLater(ctx, {
    getSystemPromptOptions: () => {
      requireFresh(seat);
      return lazy("api/prompt_options").fullPromptOptions(now(seat, "promptOptions"));
    },
  });
}

function keepSetup(setup) {
  if (typeof setup !== "function") return undefined;
  setupCount += 1;
  setups.set(setupCount, setup);
  return setupCount;
}

/** Runs the setup function of a new session, before other hooks see the session. */
export async function runSetup(number) {
  const setup = setups.get(number);
  setups.delete(number);
  if (setup) await setup(writableSession(home));
}

// The command context of the session that replaced the old one.
function replacedContext(scope, generation) {
  const seat = { generation };
  const ctx = makeCommandContext(newScope(scope.extension, scope.work, seat));
  // The caller that replaced the session may wait for the run that this starts.
  const say = async (method, ...values) => {
    requireFresh(seat);
    await pausing(scope.extension, () => later(seat, method, ...values));
  };
  ctx.sendMessage = (message, options) => say("sendMessage", lazy("api/saying").fullMessage(message), options ?? {});
  ctx.sendUserMessage = (content, options = {}) =>
    say("sendUserMessage", content, { ...options, expand: options?.expandPromptTemplates === true });
  return ctx;
}

