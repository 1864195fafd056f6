// The commands of a clip, and the form and results of the one that is chosen.

import { h, fill, route, problem, freshId } from "../dom.js";
import { makeForm, jsonControl, showFieldError, clearFieldErrors, FieldError } from "../form.js";
import { readSchema, isEmptyObject } from "../schema.js";
import { block } from "../results.js";
import { Results } from "../runner.js";
import { hub } from "../hub.js";

/** The last input of each form, and the secrets of protected clips, until the page is reloaded. */
const remembered = new Map();
const secrets = new Map();

export function showCommands(page) {
  const { main, alias, inside, manifest } = page;
  const commands = manifest.commands ?? [];
  const chosen = inside[0];
  const command = commands.find(({ name }) => name === chosen) ?? (chosen && commands.length === 0 ? { name: chosen } : undefined);
  const list = commandList(alias, commands, manifest.groups ?? {}, command?.name);
  if (!command) {
    fill(main, chosen ? problem({ code: "not_found", message: `${alias} has no command ${chosen}.` }) : null, list,
      commands.length ? null : anyCommand(page));
    return;
  }
  main.classList.add("split");
  fill(main, list, panel(page, command));
}

function commandList(alias, commands, groups, chosen) {
  const item = (command) => h("li",
    h("a.command", { href: route("clip", alias, "run", command.name), "aria-current": command.name === chosen ? "true" : null },
      h("span.command-name", command.name), command.streaming ? h("span.badge", "stream") : null,
      h("span.command-description", command.description || "")));
  const grouped = new Map([["", []]]);
  for (const command of commands) {
    const group = command.name.includes(" ") ? command.name.split(" ")[0] : "";
    grouped.set(group, [...(grouped.get(group) ?? []), command]);
  }
  return h("nav.commands", { "aria-label": "Commands" }, [...grouped].filter(([, members]) => members.length).map(([group, members]) => [
    group ? h("h2", group, groups[group] ? h("span.group-description", groups[group]) : null) : null,
    h("ul", members.map(item)),
  ]));
}

/** The form for a clip that does not list its commands: it accepts any name. */
function anyCommand(page) {
  const id = freshId("command");
  const input = h("input", { id, required: true, autocomplete: "off", spellcheck: "false" });
  const submit = (event) => {
    event.preventDefault();
    if (input.value.trim()) page.go("clip", page.alias, "run", input.value.trim());
  };
  return h("form.card", { on: { submit } }, h("p", "This clip does not list its commands. Enter the name of one."),
    h("div.field", h("label", { for: id }, "Command"), input), h("div.actions", h("button", { type: "submit" }, "Continue")));
}

function panel(page, command) {
  const { alias, clip, signal } = page;
  const key = `${alias}\n${command.name}`;
  const input = inputEditor(readSchema(command.input), remembered.get(key));
  const secret = clip()?.tokenProtected
    ? h("input", { type: "password", id: freshId("secret"), autocomplete: "off", value: secrets.get(alias) ?? "" }) : null;
  const results = new Results();
  const run = h("button.primary", { type: "submit" }, "Run");
  const cancel = h("button", { type: "button", disabled: true }, "Cancel");
  const failed = h("div");
  let call = null;
  cancel.addEventListener("click", () => call?.abort());
  const form = h("form.run-form", { novalidate: true, on: { submit: async (event) => {
    event.preventDefault();
    if (call) return;
    clearFieldErrors(form);
    fill(failed);
    let value;
    try {
      value = input.read();
    } catch (error) {
      if (!(error instanceof FieldError)) throw error;
      showFieldError(form, error);
      return;
    }
    remembered.set(key, value);
    if (secret) secrets.set(alias, secret.value);
    call = new AbortController();
    signal.addEventListener("abort", () => call?.abort());
    const focused = document.activeElement === run;
    run.disabled = true;
    cancel.disabled = false;
    if (focused) cancel.focus();
    try {
      await results.show(hub.invoke(alias, command.name, value, { clipToken: secret?.value, signal: call.signal }));
    } catch (error) {
      page.fail(error, failed);
    } finally {
      const wasOnCancel = document.activeElement === cancel;
      call = null;
      run.disabled = false;
      cancel.disabled = true;
      if (wasOnCancel) run.focus();
      // A call may start a clip or reveal that it has failed.
      page.clips.refresh();
    }
  } } },
    input.element,
    secret ? h("div.field", h("label", { for: secret.id }, "Secret of this clip"), secret) : null,
    failed,
    h("div.actions", run, cancel, h("span.hint.keys", h("kbd", "Ctrl"), "+", h("kbd", "Enter"), " runs the command")));
  return h("section.panel", { "aria-label": `Command ${command.name}` },
    h("a.back", { href: route("clip", alias) }, "All commands"),
    h("h2", command.name, command.streaming ? h("span.badge", "stream") : null),
    command.description ? h("p.description", command.description) : null,
    form, results.element, outputSchema(command.output));
}

function outputSchema(text) {
  if (!text) return null;
  const { kind, schema } = readSchema(text);
  if (kind === "none") return null;
  return h("details.schema", h("summary", "Output schema"), block(kind === "schema" ? JSON.stringify(schema, null, 2) : text, kind === "schema" ? "json" : "text"));
}

/** The form of a schema, and JSON beside it: two views of one value. */
function inputEditor({ kind, schema, text }, value) {
  const asJson = (current) => jsonControl({ label: "Input (JSON)", value: current ?? {}, required: false, rows: 6 });
  if (kind !== "schema") {
    const control = asJson(value);
    const hint = kind === "text"
      ? [h("p.hint", "The clip describes its input as text:"), h("pre.block", text)]
      : h("p.hint", "The clip does not describe its input.");
    return { element: h("div.fields", hint, control.element), read: () => control.read() ?? {} };
  }
  const isNothing = isEmptyObject(schema);
  const draw = (current) => (isNothing ? { element: h("p.hint", "This command takes no input."), read: () => ({}) } : makeForm(schema, current));
  let isForm = true;
  let control = draw(value);
  const holder = h("div", control.element);
  const failed = h("p.field-error", { role: "alert", hidden: true });
  const toggle = h("button.small.quiet", { type: "button", "aria-pressed": "false" }, "Edit as JSON");
  const set = (form, current) => {
    isForm = form;
    control = form ? draw(current) : asJson(current);
    fill(holder, control.element);
    toggle.textContent = form ? "Edit as JSON" : "Back to the form";
    toggle.setAttribute("aria-pressed", String(!form));
  };
  toggle.addEventListener("click", () => {
    failed.hidden = true;
    let current;
    try {
      current = control.read();
    } catch (error) {
      if (!isForm) {
        failed.textContent = error.message;
        failed.hidden = false;
        return;
      }
      // A form that is not complete yet has no value; its JSON starts empty.
      current = {};
    }
    set(!isForm, current);
  });
  return {
    element: h("div.editor", h("div.editor-head", h("h3", "Input"), toggle), holder, failed),
    read: () => control.read() ?? {},
  };
}
