// Installing a clip.

import { h, fill, freshId, problem, route } from "../dom.js";
import { hub } from "../hub.js";
import { isAbort } from "../connect.js";
import { elapsed, count } from "../words.js";

const SOURCES = [
  ["@scope/name, @scope/name@1.2.0", "a package of the hub's registry"],
  ["npm/name", "a package from npm"],
  ["github/user/repo#branch", "a GitHub repository"],
  ["local/name:/absolute/path", "a directory or an archive on the hub's machine"],
  ["registry:https://host/#@scope/name", "a package of another registry"],
];

export async function showInstall(page) {
  const { main, signal, clips } = page;
  const field = (label, hint, input) => {
    input.id = freshId("install");
    const note = h("p.hint", { id: freshId("hint") }, hint);
    input.setAttribute("aria-describedby", note.id);
    return h("div.field", h("label", { for: input.id }, label), input, note);
  };
  const text = (attributes) => h("input", { type: "text", autocomplete: "off", spellcheck: "false", ...attributes });
  const source = text({ required: true });
  const alias = text({});
  const provider = h("select", h("option", { value: "" }, "chosen by the hub"));
  const secret = h("input", { type: "password", autocomplete: "new-password" });
  const install = h("button.primary", { type: "submit" }, "Install");
  const cancel = h("button", { type: "button", disabled: true }, "Cancel");
  const state = h("div", { role: "status" });
  let call = null;
  cancel.addEventListener("click", () => call?.abort());
  const submit = async (event) => {
    event.preventDefault();
    if (call) return;
    call = new AbortController();
    signal.addEventListener("abort", () => call?.abort());
    install.disabled = true;
    cancel.disabled = false;
    const started = performance.now();
    const time = h("span.run-time", { "aria-hidden": "true" });
    const ticking = setInterval(() => (time.textContent = elapsed(performance.now() - started)), 200);
    fill(state, h("p", `Installing ${source.value.trim()} `, time));
    const request = { source: source.value.trim() };
    if (alias.value.trim()) request.requestedAlias = alias.value.trim();
    if (provider.value) request.provider = provider.value;
    if (secret.value) request.clipToken = secret.value;
    try {
      const { clip = {} } = await hub.install(request, { signal: call.signal });
      fill(state, h("p.success", "Installed ", h("a", { href: route("clip", clip.name ?? "") }, clip.name ?? "the clip"),
        clip.version ? ` v${clip.version}` : "", ` with ${count((clip.commands ?? []).length, "command")}.`));
      clips.refresh();
    } catch (error) {
      fill(state, isAbort(error) ? h("p", "Cancelled.") : null);
      page.fail(error, state);
    } finally {
      clearInterval(ticking);
      call = null;
      install.disabled = false;
      cancel.disabled = true;
    }
  };
  fill(main,
    h("nav.crumbs", { "aria-label": "Where you are" }, h("a", { href: route("clips") }, "Clips"), h("span", { "aria-current": "page" }, "Install")),
    h("div.page-head", h("h1", "Install a clip")),
    h("div.columns",
      h("form.card", { on: { submit } },
        field("Source", "One of the forms listed under Sources.", source),
        field("Alias", "The name under which the clip is called; the package's name if left empty. A clip that already has this alias is upgraded.", alias),
        field("Runtime", "The runtime that installs and runs the clip.", provider),
        field("Secret", "If set, every call must send it.", secret),
        h("div.actions", install, cancel), state),
      h("aside", h("h2", "Sources"), h("dl.sources", SOURCES.map(([form, meaning]) => [h("dt", h("code", form)), h("dd", meaning)])),
        h("p.hint", "A clip is a program that runs with the hub's rights. Install only clips you trust."))));
  source.focus();
  try {
    const runtimes = (await hub.providers({ signal })).filter((runtime) => runtime.acceptsManage);
    provider.append(...runtimes.map((runtime) => h("option", { value: runtime.name }, runtime.name)));
  } catch (error) {
    // Without the list, the hub chooses a runtime.
    if (error.code === "unauthenticated") throw error;
  }
}
