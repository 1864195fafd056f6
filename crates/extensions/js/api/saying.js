// Messages that extensions send, as themselves or as the user.
//
// A message that starts a run is sent with a short delay, so that the sender returns to its own caller first.

import { home, now } from "pinion:api/bridge";
import { input } from "pinion:api/events";
import { report } from "pinion:api/handlers";
import { hasHandlers, namedCommands } from "pinion:api/registry";
import { isTellingOfRun } from "pinion:api/runs";

let count = 0;
// Runs that extensions requested and that have not begun.
let beginning = [];

/** Sends a message as the extension. */
export function sendMessage(given, options) {
  const how = { ...options, duringRun: isTellingOfRun() };
  const message = fullMessage(given);
  const send = () => now(home, "sendMessage", message, how);
  const starts = how.triggerTurn && !how.duringRun && how.deliverAs !== "nextTurn";
  if (starts && now(home, "isIdle")) {
    const begun = soon("send_message", send);
    beginning.push(begun);
    begun.then(() => (beginning = beginning.filter((other) => other !== begun)));
  } else {
    send();
  }
}

/** Returns a message with the type that it must have; an extension may leave it out. */
export function fullMessage(given) {
  if (given === null || typeof given !== "object" || given.customType !== undefined) return given;
  return { ...given, customType: "" };
}

/** Sends a message as the user; handlers of `input` see it first. */
export function sendUserMessage(content, options) {
  const parts = typeof content === "string" ? [{ type: "text", text: content }] : content;
  const images = parts.filter((part) => part?.type === "image");
  const texts = parts.filter((part) => part?.type === "text").map((part) => part.text);
  const given = { text: texts.join("\n"), images: images.length ? images : undefined, source: "extension" };
  const how = { ...options, expand: options?.expandPromptTemplates === true, duringRun: isTellingOfRun() };
  if (!hasHandlers("input") || (how.expand && isCommand(given.text))) {
    say(given, how);
    return;
  }
  if (how.duringRun || !now(home, "isIdle")) given.streamingBehavior = options?.deliverAs;
  const work = `said:${(count += 1)}`;
  input(work, given).then((heard) => {
    if (!heard.handled) say(heard, how);
  });
}

// Commands run without asking handlers of `input`.
function isCommand(text) {
  return text.startsWith("/") && namedCommands().some(({ called }) => called === text.slice(1).split(" ", 1)[0]);
}

function say(heard, how) {
  const words = [{ type: "text", text: heard.text }, ...(heard.images ?? [])];
  const duringRun = how.duringRun || !now(home, "isIdle");
  const send = () => now(home, "sendUserMessage", words, { ...how, duringRun });
  // The run waits for its own handlers, so a refusal must reach them before it continues.
  if (how.duringRun || (duringRun && how.deliverAs)) {
    send();
  } else {
    soon("send_user_message", send);
  }
}

/** Reports whether a run is about to begin. */
export const isBeginning = () => beginning.length > 0;

/** Resolves when every requested run has begun. */
export const allBegun = () => Promise.all(beginning);

function soon(event, act) {
  return new Promise((done) => {
    setTimeout(() => {
      try {
        act();
      } catch (error) {
        report("<runtime>", event, error);
      }
      done();
    }, 0);
  });
}
