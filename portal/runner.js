// Shows one call: its parts as they arrive, its duration and its outcome. Only the last parts stay, so that an endless
// call does not fill the page.

import { h, problem, copyButton } from "./dom.js";
import { parseJson } from "./json.js";
import { showValue, picturesIn } from "./results.js";
import { elapsed, count } from "./words.js";
import { isAbort, textOf, RpcError } from "./connect.js";

const MOST_PARTS = 400;
const LONGEST_TEXT = 400_000;

/** The place where calls are shown; `show(call)` takes a stream of InvokeResponses and resolves when it ended. */
export class Results {
  constructor() {
    this.status = h("p.run-status", { role: "status" });
    this.time = h("span.run-time", { "aria-hidden": "true" });
    this.output = h("div.output", { role: "log", "aria-label": "Results", "aria-live": "polite" });
    this.element = h("section.results", { "aria-label": "Results" }, h("div.run-line", this.status, this.time), this.output);
  }

  /** Removes the results of the last call. */
  clear() {
    this.output.replaceChildren();
    this.text = null;
    this.parts = 0;
  }

  async show(call) {
    this.clear();
    const started = performance.now();
    const tick = () => (this.time.textContent = elapsed(performance.now() - started));
    const ticking = setInterval(tick, 100);
    this.state("running", "Running");
    try {
      for await (const response of call) {
        if (response.error) throw new RpcError(response.error.code || "internal", response.error.message);
        this.part(response.output);
        this.state("running", `Running, ${count(this.parts, "part")}`);
      }
      this.state("done", this.parts > 1 ? `Done, ${count(this.parts, "part")}` : "Done");
    } catch (error) {
      if (isAbort(error)) {
        this.state("cancelled", `Cancelled after ${count(this.parts, "part")}`);
      } else {
        this.state("failed", "Failed");
        this.output.append(problem(error));
        if (error.code === "unauthenticated") throw error;
      }
    } finally {
      clearInterval(ticking);
      tick();
    }
  }

  state(name, text) {
    this.element.dataset.state = name;
    if (this.status.textContent !== text) this.status.textContent = text;
  }

  part(output) {
    this.parts += 1;
    const text = textOf(output);
    let value;
    try {
      value = text === "" ? {} : parseJson(text);
    } catch {
      value = text;
    }
    if (typeof value === "string" && picturesIn(value).length === 0) this.appendText(value);
    else {
      this.text = null;
      this.output.append(h("div.part", { data: { part: this.parts } }, showValue(value)));
    }
    this.forgetOldest();
  }

  /** Strings that follow each other are one text, as the hub joins them for callers who want one answer. */
  appendText(value) {
    if (!this.text || this.text.length > LONGEST_TEXT) {
      const node = document.createTextNode("");
      const box = h("pre.block", { data: { kind: "text" }, tabindex: "0" }, node);
      const frame = h("div.part", h("div.block-frame", box, h("div.block-actions.over", copyButton(() => node.data))));
      this.output.append(frame);
      this.text = node;
    }
    this.text.appendData(value);
  }

  forgetOldest() {
    while (this.output.childElementCount > MOST_PARTS) {
      const first = this.output.firstElementChild;
      if (first.classList.contains("forgotten")) first.nextElementSibling.remove();
      else first.replaceWith(h("p.hint.forgotten", `Only the last ${MOST_PARTS} parts are shown.`));
    }
  }
}
