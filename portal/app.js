// The portal's frame: the session, the current page and the bar above it. A page is a function `show(page)` that
// fills `page.main` and stops its work when `page.signal` fires.

import { h, fill, problem, route } from "./dom.js";
import { hub, access, Clips } from "./hub.js";
import { isAbort } from "./connect.js";
import { showSignIn } from "./views/signin.js";
import { showClips } from "./views/clips.js";
import { showClip } from "./views/clip.js";
import { showInstall } from "./views/install.js";
import { showProviders } from "./views/providers.js";
import { showTokens } from "./views/tokens.js";
import { showHubLogs } from "./views/logs.js";
import { showAgent } from "./views/agent.js";

const PAGES = {
  clips: { title: "Clips", show: showClips, nav: true },
  clip: { title: "Clip", show: showClip, under: "clips" },
  agent: { title: "Agent", show: showAgent, nav: true },
  providers: { title: "Providers", show: showProviders, nav: true },
  logs: { title: "Logs", show: showHubLogs, nav: true, superOnly: true },
  tokens: { title: "Tokens", show: showTokens, nav: true, superOnly: true },
  install: { title: "Install", show: showInstall, under: "clips" },
};

const top = document.getElementById("top");
const main = document.getElementById("main");
const notice = document.getElementById("notice");

const app = {
  info: {},
  session: null,
  clips: new Clips(),
  leaving: new AbortController(),
};

function parts() {
  const path = location.hash.replace(/^#\/?/, "");
  if (!path || path === "main") return ["clips"];
  return path.split("/").map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  });
}

/** Shows the page the address names. */
async function go() {
  app.leaving.abort();
  app.leaving = new AbortController();
  const [name, ...rest] = parts();
  if (!app.session) return signIn();
  const page = PAGES[name];
  drawTop(page?.under ?? name);
  const { signal } = app.leaving;
  const view = {
    main, rest, signal, clips: app.clips, session: app.session, info: app.info,
    title: (text) => (document.title = `${text} · ${app.info.name || "pinion hub"}`),
    go: (...where) => (location.hash = route(...where)),
    fail: (error, place) => fail(error, place, signal),
    notify,
  };
  fill(main);
  main.className = `page page-${name}`;
  view.title(page?.title ?? "Not found");
  if (!page) {
    fill(main, h("h1", "Page not found"), h("p", h("a", { href: route("clips") }, "All clips")));
    return;
  }
  try {
    await page.show(view);
  } catch (error) {
    fail(error, main, signal);
  }
}

/** Shows the error of a page at its place; an ended session leads to the sign-in page. */
function fail(error, place, signal) {
  if (isAbort(error) || signal?.aborted) return;
  if (error.code === "unauthenticated") {
    signedOut("Your session has ended. Sign in again.");
    return;
  }
  if (!error.code) console.error(error);
  (place ?? main).append(problem(error));
}

let noticeTimer = null;
/** Shows a notice for five seconds. */
function notify(text) {
  clearTimeout(noticeTimer);
  fill(notice, h("p", text));
  noticeTimer = setTimeout(() => fill(notice), 5000);
}

function drawTop(current) {
  const isSuper = app.session.kind === "super";
  const links = Object.entries(PAGES)
    .filter(([, page]) => page.nav && (isSuper || !page.superOnly))
    .map(([name, page]) => h("a", { href: route(name), "aria-current": name === current ? "page" : null }, page.title));
  const who = app.session.scope || app.session.alias || app.session.kind || "signed in";
  top.hidden = false;
  fill(top,
    h("a.brand", { href: route("clips") }, h("img", { src: "/portal/icon.svg", alt: "", width: 20, height: 20 }), h("span", app.info.name || "pinion hub")),
    h("nav", { "aria-label": "Pages" }, links),
    h("div.who", h("span.version", app.info.version ? `v${app.info.version}` : ""), h("span.badge", { title: "Signed in as" }, who),
      app.session.signedIn
        ? h("button.small.quiet", { type: "button", on: { click: signOut } }, "Sign out")
        : h("button.small.quiet", { type: "button", on: { click: () => signedOut() } }, "Sign in")));
}

async function signOut() {
  try {
    await access.signOut();
  } catch (error) {
    if (error.code !== "unauthenticated") return fail(error, main);
  }
  signedOut("You are signed out.");
}

function signedOut(text) {
  app.session = null;
  app.clips.stop();
  closeDialogs();
  signIn(text);
}

/** Closes the dialogs of the page that the user leaves. */
function closeDialogs() {
  document.querySelectorAll("dialog[open]").forEach((dialog) => dialog.close());
}

function signIn(text) {
  app.leaving.abort();
  app.leaving = new AbortController();
  top.hidden = true;
  main.className = "page page-signin";
  document.title = `Sign in · ${app.info.name || "pinion hub"}`;
  showSignIn({ main, info: app.info, text, done: start });
}

/** Reads the session, then shows the page. */
async function start() {
  try {
    app.info = await hub.info();
    app.session = await whoAmI();
  } catch (error) {
    top.hidden = true;
    main.className = "page page-signin";
    fill(main, problem(error), h("p", h("button", { type: "button", on: { click: start } }, "Try again")));
    return;
  }
  if (app.session) app.clips.start();
  go();
}

async function whoAmI() {
  try {
    return await access.session();
  } catch (error) {
    if (error.code !== "unauthenticated") throw error;
    return app.info.authRequired ? null : { kind: "guest" };
  }
}

app.clips.watch((list, error) => {
  const lost = error && error.code !== "permission_denied";
  if (error?.code === "unauthenticated") signedOut("Your session has ended. Sign in again.");
  else document.body.classList.toggle("lost", Boolean(lost));
}, new AbortController().signal);

window.addEventListener("hashchange", () => {
  if (location.hash === "#main") return main.focus();
  closeDialogs();
  go().then(() => {
    const heading = main.querySelector("h1");
    if (!heading || main.contains(document.activeElement)) return;
    heading.tabIndex = -1;
    heading.focus({ preventScroll: true });
    window.scrollTo(0, 0);
  });
});

window.addEventListener("keydown", (event) => {
  const isTyping = event.target.matches?.("input, textarea, select, [contenteditable]");
  if (event.key === "/" && !isTyping && !event.ctrlKey && !event.metaKey && !event.altKey) {
    const search = main.querySelector("input[type=search]");
    if (!search) return;
    event.preventDefault();
    search.focus();
    search.select();
  } else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.target.closest?.("form")?.requestSubmit();
  }
});

start();
