// What extensions say: as themselves, or as the user would.
//
// What starts a run does so a moment later, so that whoever said it answers its own caller first.

import { home, now } from "pinion:api/bridge";
import { input } from "pinion:api/events";
import { report } from "pinion:api/handlers";
import { extensions } from "pinion:api/registry";
import { isTellingOfRun } from "pinion:api/runs";

let count = 0;
// Runs that extensions asked for and that have not begun.
let beginning = [];

/** Says something as an extension. */
export function sendMessage(message, options) {
  const how = { ...options, duringRun: isTellingOfRun() };
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

/** Says something as the user would; handlers of `input` hear it first. */
export function sendUserMessage(content, options) {
  const parts = typeof content === "string" ? [{ type: "text", text: content }] : content;
  const images = parts.filter((part) => part?.type === "image");
  const texts = parts.filter((part) => part?.type === "text").map((part) => part.text);
  const given = { text: texts.join("\n"), images: images.length ? images : undefined, source: "extension" };
  const how = { ...options, duringRun: isTellingOfRun() };
  if (!extensions.some((extension) => extension.handlers.has("input"))) {
    say(given, how);
    return;
  }
  const work = `said:${(count += 1)}`;
  input(work, given).then((heard) => {
    if (!heard.handled) say(heard, how);
  });
}

function say(heard, how) {
  const words = [{ type: "text", text: heard.text }, ...(heard.images ?? [])];
  const duringRun = how.duringRun || !now(home, "isIdle");
  const send = () => now(home, "sendUserMessage", words, { ...how, duringRun });
  // The run waits for its own handlers: what they are refused is told before it goes on.
  if (how.duringRun || (duringRun && how.deliverAs)) {
    send();
  } else {
    soon("send_user_message", send);
  }
}

/** Whether a run is about to begin. */
export const isBeginning = () => beginning.length > 0;

/** Every run that was asked for has begun. */
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
