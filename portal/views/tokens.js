// The tokens that permit access to the hub.

import { h, fill, freshId, openDialog, confirmDialog, copy, problem } from "../dom.js";
import { access } from "../hub.js";
import { ago, moment } from "../words.js";

const LIFETIMES = [["1 day", 86_400], ["7 days", 604_800], ["30 days", 2_592_000], ["90 days", 7_776_000], ["1 year", 31_536_000], ["never expires", 0]];
const KINDS = [
  ["hub", "Hub: for a person or a program, with a scope"],
  ["clip", "Clip: for one clip that calls the hub"],
  ["super", "Super: permits everything"],
];

export async function showTokens(page) {
  const { main, signal } = page;
  const body = h("div");
  const create = h("button.primary.small", { type: "button", on: { click: () => createToken(page, draw) } }, "New token…");
  fill(main, h("div.page-head", h("h1", "Tokens"), h("div.tools", create)), body);
  const draw = async () => {
    const tokens = await access.tokens({ signal });
    fill(body, tokens.length ? h("ul.rows", tokens.map((token) => row(token, page, draw))) : h("p.empty", "There are no tokens."));
  };
  await draw();
}

function row(token, page, draw) {
  const expires = token.expires ? Date.parse(token.expires) : null;
  const isOver = expires !== null && expires < Date.now();
  const facts = [
    token.created ? `created ${ago(Date.parse(token.created))}` : null,
    expires === null ? "never expires" : isOver ? "expired" : `expires ${ago(expires)}`,
    token.lastUsed ? `used ${ago(Date.parse(token.lastUsed))}` : "never used",
  ].filter(Boolean);
  const revoke = async () => {
    const name = token.label || token.id;
    const sure = await confirmDialog(`Revoke ${name}?`, "The hub rejects this token at once. If you signed in with it, you are signed out.", "Revoke");
    if (!sure) return;
    try {
      await access.revoke(token.id);
      page.notify(`${name} was revoked.`);
      await draw();
    } catch (error) {
      page.fail(error);
    }
  };
  return h("li.token-row", { data: { id: token.id } },
    h("div.clip-main", h("span.name", token.label || "no label"), h("span.badge", { data: { kind: token.kind } }, token.kind),
      token.scope ? h("code", token.scope) : null, token.alias ? h("code", token.alias) : null, token.manage ? h("span.badge", "manage") : null),
    h("span.facts", { title: token.created ? moment(Date.parse(token.created)) : null }, facts.join(" · ")),
    h("code.token-id", token.id),
    h("button.small.quiet", { type: "button", "aria-label": `Revoke ${token.label || token.id}`, on: { click: revoke } }, "Revoke…"));
}

async function createToken(page, draw) {
  const made = await openDialog("New token", (close) => {
    const labelled = (label, input, hint) => {
      input.id = freshId("token");
      return h("div.field", h("label", { for: input.id }, label), input, hint ? h("p.hint", hint) : null);
    };
    const text = (attributes) => h("input", { type: "text", autocomplete: "off", spellcheck: "false", ...attributes });
    const label = text({ autofocus: true });
    const kind = h("select", KINDS.map(([value, meaning]) => h("option", { value }, meaning)));
    const scope = text({ value: page.session.scope || "@me" });
    const alias = h("select", (page.clips.list ?? []).map((clip) => h("option", { value: clip.name }, clip.name)));
    const manage = h("input", { type: "checkbox", id: freshId("token") });
    const life = h("select", LIFETIMES.map(([name, seconds]) => h("option", { value: seconds }, name)));
    life.value = "7776000";
    const failed = h("div");
    const button = h("button.primary", { type: "submit" }, "Create");
    const ofKind = {
      hub: [labelled("Scope", scope, "The owner of the token, as in @name."),
        h("label.check", { for: manage.id }, manage, h("span", "May install, remove and bind clips"))],
      clip: [labelled("Clip", alias)],
      super: [],
    };
    const details = h("div", ofKind.hub);
    kind.addEventListener("change", () => fill(details, ofKind[kind.value]));
    const submit = async (event) => {
      event.preventDefault();
      fill(failed);
      button.disabled = true;
      const request = { kind: kind.value, label: label.value.trim(), ttlSeconds: Number(life.value) };
      if (kind.value === "hub") Object.assign(request, { scope: scope.value.trim(), manage: manage.checked });
      if (kind.value === "clip") request.alias = alias.value;
      try {
        close(await access.create(request));
      } catch (error) {
        if (error.code === "unauthenticated") {
          close(null);
          page.fail(error);
        } else {
          fill(failed, problem(error));
        }
      } finally {
        button.disabled = false;
      }
    };
    return h("form", { on: { submit } }, labelled("Label", label, "The purpose of the token, shown in the list."), labelled("Kind", kind), details, labelled("Lifetime", life), failed,
      h("div.actions", h("button.quiet", { type: "button", on: { click: () => close(null) } }, "Cancel"), button));
  });
  if (!made) return;
  await showOnce(made);
  await draw().catch((error) => page.fail(error));
}

/** Shows the new token; the hub cannot show it again. */
function showOnce(made) {
  return openDialog("Copy this token now", (close) => {
    const value = h("input.code", { id: "new-token", type: "text", readonly: true, value: made.token, "aria-label": "The new token" });
    value.addEventListener("focus", () => value.select());
    const button = h("button.primary", { type: "button", autofocus: true }, "Copy");
    const said = h("p.hint", { role: "status" }, "The hub stores only a fingerprint of the token and cannot show it again.");
    button.addEventListener("click", async () => {
      said.textContent = (await copy(made.token)) ? "Copied." : "The browser did not permit copying. Select the token and copy it by hand.";
    });
    return h("div", h("div.field", value), said, h("div.actions", button, h("button", { type: "button", on: { click: () => close(true) } }, "Done")));
  });
}
