// Log lines of a clip or of the hub: the last ones, then new ones as they arrive.

import { h, fill, freshId, problem } from "../dom.js";
import { hub } from "../hub.js";
import { isAbort } from "../connect.js";
import { clock, moment, count } from "../words.js";

const MOST_LINES = 2000;
const LEVELS = ["debug", "info", "warn", "error"];
const TAILS = [50, 200, 1000, 5000];
const WAIT_BEFORE_AGAIN = 2000;

export const showClipLogs = (page) => showLogs(page, { clipName: page.alias });

export function showHubLogs(page) {
  const body = h("div");
  fill(page.main, h("div.page-head", h("h1", "Hub log")), body);
  return showLogs({ ...page, main: body }, { system: true });
}

function showLogs(page, request) {
  const { main, signal } = page;
  const lines = h("ol.log", { role: "log", "aria-label": "Log lines", tabindex: "0", "aria-live": "polite" });
  const state = h("span.hint", { role: "status" });
  const level = h("select", { id: freshId("level") }, LEVELS.map((name) => h("option", { value: name }, name)));
  const tail = h("select", { id: freshId("tail") }, TAILS.map((number) => h("option", { value: number }, `last ${number}`)));
  const follow = h("input", { type: "checkbox", id: freshId("follow"), checked: true });
  const filter = h("input", { type: "search", "aria-label": "Filter lines", placeholder: "Filter lines", autocomplete: "off" });
  const pause = h("button.small", { type: "button", "aria-pressed": "false" }, "Pause");
  const clear = h("button.small.quiet", { type: "button", on: { click: () => fill(lines) } }, "Clear");
  let held = [];
  let paused = false;
  let reading = new AbortController();

  const matches = (text) => !filter.value || text.toLowerCase().includes(filter.value.toLowerCase());
  const add = (entries) => {
    const atEnd = lines.scrollHeight - lines.scrollTop - lines.clientHeight < 40;
    for (const entry of entries) lines.append(row(entry, matches));
    while (lines.childElementCount > MOST_LINES) lines.firstElementChild.remove();
    if (atEnd) lines.scrollTop = lines.scrollHeight;
  };
  const take = (entry) => {
    if (!paused) return add([entry]);
    held.push(entry);
    if (held.length > MOST_LINES) held.shift();
    state.textContent = `Paused, ${count(held.length, "new line")}`;
  };
  const setPaused = (value) => {
    paused = value;
    pause.textContent = value ? "Resume" : "Pause";
    pause.setAttribute("aria-pressed", String(value));
    state.textContent = value ? "Paused" : follow.checked ? "Following" : "";
    if (value) return;
    const missed = held;
    held = [];
    add(missed);
  };

  /** Reads until the stream ends or the user leaves the page; reconnects while following. */
  const read = async () => {
    reading.abort();
    reading = new AbortController();
    const mine = reading;
    const options = { signal: AbortSignal.any([mine.signal, signal]) };
    const isOver = () => options.signal.aborted;
    held = [];
    setPaused(false);
    fill(lines);
    const seen = new Newest();
    for (;;) {
      const asked = { ...request, minLevel: level.value, follow: follow.checked, tail: Number(tail.value) };
      if (seen.time) asked.sinceUnixMs = String(seen.time);
      seen.again();
      state.textContent = follow.checked ? "Following" : "";
      try {
        for await (const entry of hub.logs(asked, options)) {
          if (seen.isNew(entry)) take(entry);
        }
        if (!follow.checked) return;
      } catch (error) {
        if (isAbort(error) || isOver()) return;
        if (error.code !== "unavailable" || !follow.checked) {
          state.textContent = "";
          if (error.code === "unauthenticated") page.fail(error);
          else lines.append(h("li", problem(error)));
          return;
        }
      }
      state.textContent = "Connection lost; trying again";
      await new Promise((resolve) => setTimeout(resolve, WAIT_BEFORE_AGAIN));
      if (isOver()) return;
    }
  };

  pause.addEventListener("click", () => setPaused(!paused));
  for (const control of [level, tail, follow]) control.addEventListener("change", read);
  filter.addEventListener("input", () => {
    for (const line of lines.children) line.hidden = !matches(line.textContent);
  });
  fill(main,
    h("div.log-tools",
      h("label.inline", { for: level.id }, "From level ", level),
      h("label.inline", { for: tail.id }, "Show ", tail),
      h("label.check", { for: follow.id }, follow, h("span", "Follow")),
      pause, clear, h("div.search", filter), state),
    lines);
  read().catch((error) => page.fail(error, main));
}

/** The lines of the newest millisecond, which the hub sends again after a reconnect. */
class Newest {
  time = 0;
  #lines = [];
  #expected = [];

  again() {
    this.#expected = [...this.#lines];
  }

  isNew(entry) {
    const time = Number(entry.timestampUnixMs ?? 0);
    if (time === this.time && this.#expected[0] === entry.message) {
      this.#expected.shift();
      return false;
    }
    if (time > this.time) {
      this.time = time;
      this.#lines = [];
      this.#expected = [];
    }
    if (time === this.time) this.#lines.push(entry.message);
    return true;
  }
}

function row(entry, matches) {
  const time = Number(entry.timestampUnixMs ?? 0);
  const level = LEVELS.includes(entry.level) ? entry.level : "info";
  const line = h("li.log-line", { data: { level } },
    h("time", { datetime: time ? new Date(time).toISOString() : null, title: time ? moment(time) : null }, time ? clock(time) : ""),
    h("span.level", entry.level || "info"),
    h("span.origin", entry.origin ?? ""),
    h("span.log-text", entry.message ?? ""));
  line.hidden = !matches(line.textContent);
  return line;
}
