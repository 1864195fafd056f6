// The basic components: each renders itself as lines of a given width.

import { applyBackgroundToLine, padded, truncateToWidth, wrapTextWithAnsi } from "pinion:packages/tui_text";
import { getKeybindings } from "pinion:packages/tui_keys";

export class Container {
  children = [];
  addChild(component) { this.children.push(component); }
  removeChild(component) { this.children = this.children.filter((child) => child !== component); }
  clear() { this.children = []; }
  invalidate() { for (const child of this.children) child.invalidate?.(); }
  render(width) { return this.children.flatMap((child) => child.render(width)); }
}

/** Adds padding, and a background if there is one, to lines. */
function framed(lines, width, paddingX, paddingY, background) {
  const left = " ".repeat(paddingX);
  const drawn = (line) => (background ? applyBackgroundToLine(line, width, background) : padded(line, width));
  const empty = Array.from({ length: paddingY }, () => drawn(""));
  return [...empty, ...lines.map((line) => drawn(left + line)), ...empty];
}

const asText = (text) => String(text ?? "").replaceAll("\t", "   ");

export class Text {
  #text; #paddingX; #paddingY; #background;
  constructor(text = "", paddingX = 1, paddingY = 1, customBgFn = undefined) {
    this.#text = text; this.#paddingX = paddingX; this.#paddingY = paddingY; this.#background = customBgFn;
  }
  get text() { return this.#text; }
  setText(text) { this.#text = text; }
  setCustomBgFn(customBgFn) { this.#background = customBgFn; }
  invalidate() {}
  render(width) {
    const text = asText(this.#text);
    if (text.trim() === "") return [];
    const lines = wrapTextWithAnsi(text, Math.max(1, width - 2 * this.#paddingX));
    return framed(lines, width, this.#paddingX, this.#paddingY, this.#background);
  }
}

export class TruncatedText {
  #text; #paddingX; #paddingY;
  constructor(text, paddingX = 0, paddingY = 0) { this.#text = text; this.#paddingX = paddingX; this.#paddingY = paddingY; }
  invalidate() {}
  render(width) {
    const [line] = asText(this.#text).split("\n");
    const shown = truncateToWidth(line, Math.max(1, width - 2 * this.#paddingX));
    return framed([shown], width, this.#paddingX, this.#paddingY);
  }
}

export class Spacer {
  #lines;
  constructor(lines = 1) { this.#lines = lines; }
  setLines(lines) { this.#lines = lines; }
  invalidate() {}
  render() { return Array.from({ length: this.#lines }, () => ""); }
}

export class Box {
  children = [];
  #paddingX; #paddingY; #background;
  constructor(paddingX = 1, paddingY = 1, bgFn = undefined) { this.#paddingX = paddingX; this.#paddingY = paddingY; this.#background = bgFn; }
  addChild(component) { this.children.push(component); }
  removeChild(component) { this.children = this.children.filter((child) => child !== component); }
  clear() { this.children = []; }
  setBgFn(bgFn) { this.#background = bgFn; }
  invalidate() { for (const child of this.children) child.invalidate?.(); }
  render(width) {
    const inner = Math.max(1, width - 2 * this.#paddingX);
    const lines = this.children.flatMap((child) => child.render(inner));
    return lines.length === 0 ? [] : framed(lines, width, this.#paddingX, this.#paddingY, this.#background);
  }
}

const FRAMES = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/** A message after a spinner. On a terminal the spinner turns; here it does not, and needs no timer. */
export class Loader extends Text {
  #ui; #sign; #colour; #message; #frames = FRAMES;
  constructor(ui, spinnerColorFn, messageColorFn, message = "Loading...", indicator = undefined) {
    super("", 1, 0);
    this.#ui = ui; this.#sign = spinnerColorFn; this.#colour = messageColorFn; this.#message = message;
    this.setIndicator(indicator);
  }
  #show() {
    const [frame = ""] = this.#frames;
    this.setText(`${frame === "" ? "" : `${this.#sign(frame)} `}${this.#colour(this.#message)}`);
    this.#ui?.requestRender?.();
  }
  start() { this.#show(); }
  stop() {}
  setMessage(message) { this.#message = message; this.#show(); }
  setIndicator(indicator) { this.#frames = indicator?.frames ?? FRAMES; this.#show(); }
  render(width) { return ["", ...super.render(width)]; }
}

export class CancellableLoader extends Loader {
  onAbort;
  #controller = new AbortController();
  get signal() { return this.#controller.signal; }
  get aborted() { return this.#controller.signal.aborted; }
  handleInput(data) {
    if (!getKeybindings().matches(data, "tui.select.cancel")) return;
    this.#controller.abort();
    this.onAbort?.();
  }
  dispose() { this.stop(); }
}

/** Marks the position of the cursor for input methods. */
export const CURSOR_MARKER = "\x1b_pi:c\x07";
export const isFocusable = (component) => component !== null && typeof component === "object" && "focused" in component;
