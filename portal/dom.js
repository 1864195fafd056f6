// Elements from data. Text only ever becomes text nodes: there is no way from here to markup.

const REFUSED = new Set(["innerHTML", "outerHTML", "srcdoc", "style"]);

/**
 * `h("a.button", { href: "#/x", on: { click } }, "text", child)`. Classes follow the tag; keys are attributes, `on` holds
 * listeners, `data` the dataset, and a value of `true`, `false` or `null` sets or leaves out the attribute.
 */
export function h(selector, attributes, ...children) {
  const [tag, ...classes] = selector.split(".");
  const element = document.createElement(tag);
  if (classes.length) element.className = classes.join(" ");
  const isAttributes = attributes && typeof attributes === "object" && !(attributes instanceof Node) && !Array.isArray(attributes);
  if (isAttributes) decorate(element, attributes);
  else children.unshift(attributes);
  append(element, children);
  return element;
}

function decorate(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    } else if (name === "data") {
      Object.assign(element.dataset, value);
    } else if (name === "value" || name === "checked" || name === "indeterminate") {
      element[name] = value;
    } else if (REFUSED.has(name) || (isAddress(name) && !isSafeAddress(value))) {
      throw new Error(`attribute ${name} is refused`);
    } else if (value === true) {
      element.setAttribute(name, "");
    } else if (value !== false && value !== null && value !== undefined) {
      element.setAttribute(name, value);
    }
  }
}

const isAddress = (name) => name === "href" || name === "src" || name === "action";
const isSafeAddress = (value) => /^(#|\/(?!\/)|blob:|data:image\/(png|jpeg|gif|webp);base64,)/.test(String(value));

function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
}

/** Replaces what is in an element. */
export function fill(element, ...children) {
  element.replaceChildren();
  append(element, children);
  return element;
}

/** An address within the portal: `route("clip", alias, "run", command)`. */
export function route(...parts) {
  return `#/${parts.map(encodeURIComponent).join("/")}`;
}

let lastId = 0;
/** Returns an id that is unique on the page. */
export function freshId(prefix) {
  lastId += 1;
  return `${prefix}-${lastId}`;
}

/** A failure, with its code. */
export function problem(error, ...more) {
  const code = error.code && typeof error.code === "string" ? error.code : "error";
  return h("div.problem", { role: "alert", data: { code } }, h("span.code", code), h("span.message", explain(code, error.message)), ...more);
}

function explain(code, message) {
  if (code === "permission_denied") return `${message || "Not allowed"} — the token you signed in with does not permit this.`;
  return message || "The hub gave no reason.";
}

/** Copies text; where the browser does not let pages use the clipboard, through a selection. */
export async function copy(text) {
  if (navigator.clipboard?.writeText) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      // Not permitted here: try a selection.
    }
  }
  const area = h("textarea.offscreen", { readonly: true, "aria-hidden": "true" });
  area.value = text;
  (document.querySelector("dialog[open]") ?? document.body).append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  return done;
}

/** A button that copies the result of `text()` and confirms it. */
export function copyButton(text, label = "Copy") {
  const button = h("button.small.quiet", { type: "button" }, label);
  button.addEventListener("click", async () => {
    const done = await copy(text());
    button.textContent = done ? "Copied" : "Select and copy by hand";
    setTimeout(() => (button.textContent = label), 1600);
  });
  return button;
}

/** Hands bytes to the user as a file. */
export function download(name, bytes, type = "application/octet-stream") {
  const address = URL.createObjectURL(new Blob([bytes], { type }));
  const link = h("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/**
 * Opens a dialog and resolves when it closes, with what `close(value)` was given (`null` after Escape).
 * `build(close)` makes its content.
 */
export function openDialog(title, build) {
  return new Promise((resolve) => {
    let result = null;
    const heading = h("h2", { id: freshId("dialog") }, title);
    const dialog = h("dialog", { "aria-labelledby": heading.id });
    const close = (value) => {
      result = value;
      dialog.close();
    };
    dialog.append(heading, build(close));
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(result);
    });
    dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
    document.body.append(dialog);
    dialog.showModal();
  });
}

/** Asks for confirmation of a step that cannot be undone. */
export function confirmDialog(title, text, verb, extra = null) {
  return openDialog(title, (close) =>
    h("form", { on: { submit: (event) => (event.preventDefault(), close(true)) } },
      h("p", text),
      extra,
      h("div.actions",
        h("button.quiet", { type: "button", autofocus: true, on: { click: () => close(null) } }, "Cancel"),
        h("button.danger", { type: "submit" }, verb))));
}
