// Text on a terminal: its width, wrapping and truncation. Escape sequences have no width.

import { ops } from "pinion:ops";

const ESCAPE = /\x1b(?:\[[0-9;:?]*[A-Za-z]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[_^P][^\x07\x1b]*(?:\x07|\x1b\\))/y;
const PRINTABLE = /^[\x20-\x7e]*$/;
const TAB_WIDTH = 3;
const RESET = "\x1b[0m";

/** Splits a text into parts: `{code}` for an escape sequence, `{text, width}` for a visible character. */
export function* parts(text) {
  for (let at = 0; at < text.length;) {
    ESCAPE.lastIndex = at;
    const code = text[at] === "\x1b" ? ESCAPE.exec(text)?.[0] : undefined;
    if (code !== undefined) {
      yield { code };
      at += code.length;
      continue;
    }
    let end = text.indexOf("\x1b", at + 1);
    if (end < 0) end = text.length;
    const run = text.slice(at, end);
    if (PRINTABLE.test(run)) for (const character of run) yield { text: character, width: 1 };
    else yield* clusters(run);
    at = end;
  }
}

function* clusters(run) {
  const flat = ops.display.clusters(run);
  for (let at = 0; at < flat.length; at += 2) yield { text: flat[at], width: flat[at] === "\t" ? TAB_WIDTH : flat[at + 1] };
}

/** Returns the number of columns of a text. */
export function visibleWidth(text) {
  if (PRINTABLE.test(text)) return text.length;
  let width = 0;
  for (const part of parts(text)) width += part.width ?? 0;
  return width;
}

const spaces = (count) => " ".repeat(Math.max(0, count));

/** Returns the columns `from` to `from + length` of a line; a wide character at the edge is left out. */
export function sliceByColumn(line, from, length) {
  let column = 0;
  let result = "";
  for (const { code, text, width } of parts(line)) {
    if (code !== undefined) { result += code; continue; }
    if (column >= from && column + width <= from + length) result += text;
    column += width;
  }
  return result;
}

/** Returns the text if it fits, else its beginning and `ellipsis`. */
export function truncateToWidth(text, maxWidth, ellipsis = "...", pad = false) {
  if (maxWidth <= 0) return "";
  const full = visibleWidth(text);
  if (full <= maxWidth) return pad ? text + spaces(maxWidth - full) : text;
  const mark = sliceByColumn(ellipsis, 0, maxWidth);
  const room = maxWidth - visibleWidth(mark);
  let shown = "";
  let width = 0;
  for (const part of parts(text)) {
    if (part.code !== undefined) { shown += part.code; continue; }
    if (width + part.width > room) break;
    shown += part.text;
    width += part.width;
  }
  const cut = mark === "" ? shown + RESET : `${shown}${RESET}${mark}${RESET}`;
  return pad ? cut + spaces(maxWidth - width - visibleWidth(mark)) : cut;
}

const ATTRIBUTES = [1, 2, 3, 4, 5, 7, 8, 9];
const OFF = { 22: [1, 2], 23: [3], 24: [4], 25: [5], 27: [7], 28: [8], 29: [9] };

/** The styles that are active at some point of a text. */
class Style {
  attributes = new Set();
  foreground = "";
  background = "";

  take(code) {
    if (!code.startsWith("\x1b[") || !code.endsWith("m")) return;
    const numbers = code.slice(2, -1).split(/[;:]/).map(Number);
    for (let at = 0; at < numbers.length; at += 1) at += this.#apply(numbers, at);
  }

  /** Applies the number at `at`; returns how many further numbers belong to it. */
  #apply(numbers, at) {
    const number = numbers[at];
    if (number === 0) { this.attributes.clear(); this.foreground = this.background = ""; }
    else if (ATTRIBUTES.includes(number)) this.attributes.add(number);
    else if (number in OFF) for (const off of OFF[number]) this.attributes.delete(off);
    else if (number === 38 || number === 48) {
      const taken = numbers[at + 1] === 5 ? 2 : 4;
      const colour = numbers.slice(at, at + taken + 1).join(";");
      if (number === 38) this.foreground = colour; else this.background = colour;
      return taken;
    } else if (number === 39) this.foreground = "";
    else if (number === 49) this.background = "";
    else if ((number >= 30 && number <= 37) || (number >= 90 && number <= 97)) this.foreground = String(number);
    else if ((number >= 40 && number <= 47) || (number >= 100 && number <= 107)) this.background = String(number);
    return 0;
  }

  /** Returns the sequence that turns these styles on again on the next line. */
  get opening() {
    const codes = [...ATTRIBUTES.filter((number) => this.attributes.has(number)), this.foreground, this.background].filter((code) => code !== "");
    return codes.length > 0 ? `\x1b[${codes.join(";")}m` : "";
  }

  /** Returns the sequence that ends an underline, which must not reach the edge of the terminal. */
  get closing() {
    return this.attributes.has(4) ? "\x1b[24m" : "";
  }
}

/** Splits a text into words and blanks, each with the escape sequences before it. */
function wordsOf(line) {
  const words = [];
  let codes = "";
  for (const part of parts(line)) {
    if (part.code !== undefined) { codes += part.code; continue; }
    const blank = part.text === " " || part.text === "\t";
    let word = words.at(-1);
    if (word === undefined || word.blank !== blank) words.push(word = { blank, width: 0, parts: [] });
    word.parts.push({ ...part, codes });
    word.width += part.width;
    codes = "";
  }
  return { words, trailing: codes };
}

const codesIn = (codes) => codes.match(/\x1b\[[0-9;:]*m/g) ?? [];

function wrapLine(line, width, style) {
  const { words, trailing } = wordsOf(line);
  const lines = [];
  let current = style.opening;
  let used = 0;
  const breakLine = () => {
    lines.push(current.trimEnd() + style.closing);
    current = style.opening;
    used = 0;
  };
  const put = (part) => {
    for (const code of codesIn(part.codes)) style.take(code);
    current += part.codes + part.text;
    used += part.width;
  };
  for (const word of words) {
    if (used + word.width > width && used > 0) {
      if (word.blank) {
        const codes = word.parts.map((part) => part.codes).join("");
        breakLine();
        for (const code of codesIn(codes)) style.take(code);
        current += codes;
        continue;
      }
      breakLine();
    }
    for (const part of word.parts) {
      if (used + part.width > width && used > 0) breakLine();
      put(part);
    }
  }
  for (const code of codesIn(trailing)) style.take(code);
  current += trailing;
  lines.push(lines.length > 0 || used > width ? current.trimEnd() : current);
  return lines.map((text, at) => (at === lines.length - 1 && visibleWidth(text) <= width ? text : text));
}

/** Wraps a text between words; styles continue on the next line. */
export function wrapTextWithAnsi(text, width) {
  if (!text) return [""];
  const style = new Style();
  const lines = text.split("\n").flatMap((line) => {
    const wrapped = visibleWidth(line) <= width ? [style.opening + line] : wrapLine(line, width, style);
    if (wrapped.length === 1) for (const code of codesIn(line)) style.take(code);
    return wrapped;
  });
  return lines.map((line) => (visibleWidth(line) > width ? line.trimEnd() : line));
}

/** Pads a line to `width` and applies a background. */
export function applyBackgroundToLine(line, width, background) {
  return background(line + spaces(width - visibleWidth(line)));
}

export const padded = (line, width) => line + spaces(width - visibleWidth(line));
