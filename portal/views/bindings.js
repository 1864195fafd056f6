// The clip that each dependency of a clip is bound to.

import { h, fill, freshId, problem, route } from "../dom.js";
import { hub } from "../hub.js";

export async function showBindings(page) {
  const { main, alias, manifest, signal, session } = page;
  const mayManage = session.kind === "super" || session.manage;
  let answer;
  try {
    answer = await hub.bindings(alias, { signal });
  } catch (error) {
    if (error.code !== "not_found") throw error;
    fill(main, h("p.empty", "This clip runs on another runtime. Set its bindings where it is installed."), declared(manifest));
    return;
  }
  const bindings = answer.bindings ?? {};
  const slots = { ...Object.fromEntries((manifest.dependencies ?? []).map((slot) => [slot, {}])), ...manifest.dependencySlots, ...answer.dependencySlots };
  for (const slot of Object.keys(bindings)) slots[slot] ??= {};
  const names = Object.keys(slots).sort();
  if (!names.length) {
    fill(main, h("p.empty", "This clip does not depend on other clips."));
    return;
  }
  const again = () => showBindings(page).catch((error) => page.fail(error, main));
  fill(main, h("p.hint", "A slot without a binding calls the clip whose alias is the slot's name."),
    h("div.slots", names.map((slot) => slotCard(page, slot, slots[slot], bindings[slot], mayManage, again))));
}

function declared(manifest) {
  const slots = Object.entries(manifest.dependencySlots ?? {});
  return slots.length ? h("ul.plain", slots.map(([slot, { package: name, version }]) => h("li", h("code", slot), ` ${name ?? ""} ${version ?? ""}`))) : null;
}

function slotCard(page, slot, wanted, binding, mayManage, again) {
  const { alias, signal, clips } = page;
  const others = (clips.list ?? []).filter((clip) => clip.name !== alias);
  const isCandidate = (clip) => clip.package === (wanted.package || slot) || clip.package === slot || clip.name === slot;
  const option = (clip) => h("option", { value: clip.name }, clip.version ? `${clip.name} (${clip.package || clip.name} ${clip.version})` : clip.name);
  const group = (label, members) => (members.length ? h("optgroup", { label }, members.map(option)) : null);
  const target = h("select", { id: freshId("target") }, h("option", { value: "" }, "— choose a clip —"),
    group("Matching clips", others.filter(isCandidate)), group("Other clips", others.filter((clip) => !isCandidate(clip))));
  if (binding?.alias && ![...target.options].some(({ value }) => value === binding.alias)) target.append(h("option", { value: binding.alias }, binding.alias));
  target.value = binding?.alias ?? others.find(isCandidate)?.name ?? "";
  const field = (label, type, value) => {
    const input = h("input", { id: freshId("binding"), type, value: value ?? "", autocomplete: "off", spellcheck: "false" });
    return { input, element: h("div.field", h("label", { for: input.id }, label), input) };
  };
  const hubAddress = field("Hub address", "url", binding?.hub);
  const hubToken = field("Hub token", "password", binding?.hubToken);
  const secret = field("Secret of the clip", "password", binding?.clipToken);
  const failed = h("div");
  const attempt = async (work, done) => {
    fill(failed);
    try {
      await work();
      page.notify(done);
      again();
    } catch (error) {
      if (error.code === "unauthenticated") page.fail(error);
      else fill(failed, problem(error));
    }
  };
  const bind = (event) => {
    event.preventDefault();
    if (!target.value) return fill(failed, problem({ code: "invalid_argument", message: "Choose a clip first." }));
    const next = { alias: target.value };
    if (hubAddress.input.value) next.hub = hubAddress.input.value;
    if (hubToken.input.value) next.hubToken = hubToken.input.value;
    if (secret.input.value) next.clipToken = secret.input.value;
    return attempt(() => hub.bind(alias, slot, next, { signal }), `${slot} is bound to ${target.value}.`);
  };
  const bound = binding?.alias
    ? h("p", "Bound to ", binding.hub ? h("code", `${binding.alias} at ${binding.hub}`) : h("a", { href: route("clip", binding.alias) }, binding.alias))
    : h("p.hint", "Not bound");
  return h("form.card.slot", { data: { slot }, on: { submit: bind } },
    h("h2", slot), h("p.facts", [wanted.package, wanted.version].filter(Boolean).join(" ")), bound,
    mayManage ? [
      h("div.field", h("label", { for: target.id }, "Clip"), target),
      h("details", { open: Boolean(binding?.hub) }, h("summary", "On another hub, or with a secret"), hubAddress.element, hubToken.element, secret.element),
      failed,
      h("div.actions", h("button.small", { type: "submit" }, "Bind"),
        binding ? h("button.small.quiet", { type: "button", on: { click: () => attempt(() => hub.unbind(alias, slot, { signal }), `${slot} is no longer bound.`) } }, "Unbind") : null),
    ] : null);
}
