// The providers that are connected to the hub.

import { h, fill, route, problem } from "../dom.js";
import { hub } from "../hub.js";
import { isAbort } from "../connect.js";
import { span, moment, count } from "../words.js";

const AGAIN_AFTER = 4000;

export async function showProviders(page) {
  const { main, signal, info } = page;
  const body = h("div", h("p.empty", "Loading…"));
  const uptime = info.startedAtUnixMs ? `This hub (${info.mode || "full"}, ${info.protocol || "pinix.v2"}) has been up for ${span(Date.now() - Number(info.startedAtUnixMs))}.` : "";
  fill(main, h("div.page-head", h("h1", "Providers")), h("p.hint", uptime), body);
  const draw = async () => {
    const providers = await hub.providers({ signal });
    fill(body, providers.length ? h("ul.rows", providers.map(row)) : h("p.empty", "No providers are connected. Run pinion hub join on another machine to connect it."));
  };
  await draw();
  const ticking = setInterval(() => {
    if (document.visibilityState !== "visible" || body.contains(document.activeElement)) return;
    draw().catch((error) => {
      if (isAbort(error)) return;
      if (error.code === "unauthenticated") page.fail(error);
      else fill(body, problem(error));
    });
  }, AGAIN_AFTER);
  signal.addEventListener("abort", () => clearInterval(ticking));
}

function row(provider) {
  const since = Number(provider.connectedAt ?? 0);
  const clips = provider.clips ?? [];
  return h("li.provider-row",
    h("div.clip-main", h("span.name", provider.name), provider.acceptsManage ? h("span.badge", { title: "This provider can install clips" }, "runtime") : null),
    h("span.facts", { title: since ? `since ${moment(since)}` : null }, since ? `connected for ${span(Date.now() - since)}` : "", ` · ${count(clips.length, "clip")}`),
    h("p.clip-tags", clips.map((alias) => h("a.tag", { href: route("clip", alias) }, alias))));
}
