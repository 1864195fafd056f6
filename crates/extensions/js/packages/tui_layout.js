// Components of later releases that arrange others, and helpers around terminal output.

import { Container } from "pinion:packages/tui_components";
import { sliceByColumn, visibleWidth } from "pinion:packages/tui_text";

const componentOf = (child) => (typeof child?.render === "function" ? child : child.component);
const padded = (line, width) => line + " ".repeat(Math.max(0, width - visibleWidth(line)));

/** Shows its children one below the other. */
export class VStack extends Container {
  #gap;
  constructor(children = [], { gap = 0 } = {}) {
    super();
    this.#gap = gap;
    for (const child of children) this.addChild(componentOf(child));
  }
  render(width) {
    const empty = new Array(this.#gap).fill("");
    return this.children.flatMap((child, at) => (at === 0 ? child.render(width) : [...empty, ...child.render(width)]));
  }
}

/** Shows its children side by side, in columns of the same width. */
export class HStack extends Container {
  #gap;
  constructor(children = [], { gap = 0 } = {}) {
    super();
    this.#gap = gap;
    for (const child of children) this.addChild(componentOf(child));
  }
  render(width) {
    const count = this.children.length;
    if (count === 0) return [];
    const column = Math.max(1, Math.floor((width - this.#gap * (count - 1)) / count));
    const columns = this.children.map((child) => child.render(column));
    const height = Math.max(...columns.map(({ length }) => length));
    return Array.from({ length: height }, (_, row) => columns.map((lines) => padded(lines[row] ?? "", column)).join(" ".repeat(this.#gap)));
  }
}

/** Shows a component that reacts to the mouse of a terminal. */
export class MouseRegion {
  #child; #onMouse;
  constructor(child, onMouse) { this.#child = child; this.#onMouse = onMouse; }
  render(width) { return this.#child.render(width); }
  handleMouse(event) { return this.#onMouse(event); }
  invalidate() { this.#child.invalidate?.(); }
}

/** Shows the visible part of a component. Without a viewport it shows all of it. */
export class ScrollView extends Container {
  constructor(child, options = {}) {
    super();
    this.addChild(child);
    Object.assign(this, { followEnd: false, scrollTop: 0, ...options });
  }
  setViewportHeight(rows) { this.viewportHeight = rows; }
  scrollTo(row) { this.scrollTop = Math.max(0, row); }
  scrollBy(rows) { this.scrollTo(this.scrollTop + rows); }
  scrollToStart() { this.scrollTo(0); }
  scrollToEnd() { this.scrollTop = Infinity; }
  render(width) {
    const lines = super.render(width);
    if (this.viewportHeight === undefined) return lines;
    const last = Math.max(0, lines.length - this.viewportHeight);
    const top = this.followEnd ? last : Math.min(this.scrollTop, last);
    return lines.slice(top, top + this.viewportHeight);
  }
}

export const isViewportTUI = (tui) => tui?.mode === "fullscreen";
export const getNativeClipboard = () => undefined;

// Operating system commands, and control sequences with their parameters.
const SEQUENCES = /\u001b(?:\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[PX^_][^\u001b]*\u001b\\|\[[0-?]*[ -/]*[@-~]|[ -/]*[0-~])/g;
export const stripTerminalSequences = (text) => text.replace(SEQUENCES, "");

/** Puts one line on top of another, from a column on. */
export function compositeTuiLine(base, overlay, start, overlayWidth, totalWidth) {
  const shown = padded(sliceByColumn(overlay, 0, overlayWidth), overlayWidth);
  const line = padded(base, totalWidth);
  const end = start + overlayWidth;
  return sliceByColumn(line, 0, start) + shown + sliceByColumn(line, end, Math.max(0, totalWidth - end));
}

/** Returns the address of the link at a column. */
export function getOsc8LinkAtColumn(line, column) {
  let [url, at] = [undefined, 0];
  for (const [, target, text] of line.matchAll(/\u001b\]8;[^;]*;([^\u0007\u001b]*)(?:\u0007|\u001b\\)|([^\u001b]+|\u001b(?!\]8;)(?:\[[0-?]*[ -/]*[@-~])?)/g)) {
    if (target !== undefined) { url = target || undefined; continue; }
    at += visibleWidth(text);
    if (column < at) return url;
  }
  return undefined;
}

/** Parses a terminal's answer about its background color. */
export function parseOsc11BackgroundColor(data) {
  const found = /\u001b\]11;rgba?:([0-9a-f]{1,4})\/([0-9a-f]{1,4})\/([0-9a-f]{1,4})/i.exec(data);
  if (!found) return undefined;
  const [r, g, b] = found.slice(1).map((hex) => Math.round((Number.parseInt(hex, 16) / (16 ** hex.length - 1)) * 255));
  return { r, g, b };
}
export function parseTerminalColorSchemeReport(data) {
  const found = /\u001b\[\?997;([12])n/.exec(data);
  return found ? { 1: "dark", 2: "light" }[found[1]] : undefined;
}
