// Shows a value that a clip returned: strings as text, everything else as indented JSON, pictures as pictures.
// All of it is text nodes; markup in a value is shown as it was written.

import { h, copyButton, download, freshId } from "./dom.js";
import { number } from "./words.js";

/** Longer results are folded. */
const FOLD_ABOVE = 1500;
/** Longer results are not shown at all, only offered as a file. */
const LONGEST_SHOWN = 2_000_000;
const LONGEST_COLOURED = 60_000;

/** One value, whole. */
export function showValue(value) {
  const pictures = picturesIn(value).map((address) => h("img.preview", { src: address, alt: "Picture in the result" }));
  const isText = typeof value === "string";
  if (isText && pictures.length) return h("div.value", pictures, h("p.hint", `picture, ${number(value.length)} characters of base64`));
  const text = isText ? value : JSON.stringify(value, null, 2) ?? "null";
  return h("div.value", pictures, block(text, isText ? "text" : "json"));
}

/** Text in a box that folds when it is long, with a button to copy it. */
export function block(text, kind = "text") {
  const box = h("pre.block", { data: { kind }, tabindex: "0" });
  const actions = h("div.block-actions", copyButton(() => text));
  if (text.length > LONGEST_SHOWN) {
    box.textContent = `${text.slice(0, FOLD_ABOVE)}…`;
    actions.append(saveButton(text, kind));
    return h("div.block-frame", box, h("p.hint", `${number(text.length)} characters: too long to show. Save it to a file.`), actions);
  }
  if (text.length <= FOLD_ABOVE) {
    paint(box, text, kind);
    actions.classList.add("over");
    return h("div.block-frame", box, actions);
  }
  box.id = freshId("block");
  const toggle = h("button.small.quiet", { type: "button", "aria-controls": box.id });
  const set = (open) => {
    paint(box, open ? text : `${text.slice(0, FOLD_ABOVE)}…`, kind);
    toggle.setAttribute("aria-expanded", String(open));
    toggle.textContent = open ? "Show less" : `Show all ${number(text.length)} characters`;
  };
  toggle.addEventListener("click", () => set(toggle.getAttribute("aria-expanded") !== "true"));
  set(false);
  actions.prepend(toggle);
  actions.append(saveButton(text, kind));
  return h("div.block-frame", box, actions);
}

function saveButton(text, kind) {
  const save = () => download(kind === "json" ? "result.json" : "result.txt", new TextEncoder().encode(text));
  return h("button.small.quiet", { type: "button", on: { click: save } }, "Save");
}

const TOKENS = /("(?:\\.|[^"\\])*")(\s*:)?|\b(true|false|null)\b|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

function paint(box, text, kind) {
  box.replaceChildren();
  if (kind !== "json" || text.length > LONGEST_COLOURED) {
    box.textContent = text;
    return;
  }
  let at = 0;
  for (const match of text.matchAll(TOKENS)) {
    const [whole, string, colon, word] = match;
    box.append(text.slice(at, match.index));
    const className = string ? (colon ? "key" : "string") : word ? "word" : "digit";
    box.append(h(`span.${className}`, string ?? whole), colon ?? "");
    at = match.index + whole.length;
  }
  box.append(text.slice(at));
}

const MAGIC = [["iVBORw0KGgo", "png"], ["/9j/", "jpeg"], ["R0lGOD", "gif"], ["UklGR", "webp"]];
const DATA_ADDRESS = /^data:image\/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+=*$/;
const MOST_PICTURES = 8;

/** Addresses of the pictures in a value: data URLs, and base64 that begins like one. */
export function picturesIn(value, depth = 0, found = []) {
  if (found.length >= MOST_PICTURES || depth > 3) return found;
  if (typeof value === "string") {
    const address = pictureOf(value);
    if (address) found.push(address);
  } else if (value && typeof value === "object") {
    for (const part of Object.values(value).slice(0, 50)) picturesIn(part, depth + 1, found);
  }
  return found;
}

function pictureOf(text) {
  if (text.length < 60 || text.length > LONGEST_SHOWN * 8) return null;
  if (DATA_ADDRESS.test(text)) return text;
  const type = MAGIC.find(([start]) => text.startsWith(start))?.[1];
  return type && /^[A-Za-z0-9+/\s]+=*\s*$/.test(text) ? `data:image/${type};base64,${text.replace(/\s/g, "")}` : null;
}
