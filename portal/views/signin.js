// Signing in with a token. The token is exchanged for a cookie that scripts cannot read; the page does not store it.

import { h, fill, problem, freshId } from "../dom.js";
import { access } from "../hub.js";

export function showSignIn({ main, info, text, done }) {
  const id = freshId("token");
  const input = h("input", { id, type: "password", name: "password", autocomplete: "current-password", required: true, spellcheck: "false" });
  // Password managers need a user name to store the token under.
  const user = h("input", { type: "text", name: "username", autocomplete: "username", value: info.name || "pinion hub", hidden: true });
  const button = h("button.primary", { type: "submit" }, "Sign in");
  const failed = h("div");
  const submit = async (event) => {
    event.preventDefault();
    fill(failed);
    button.disabled = true;
    try {
      await access.signIn(input.value.trim());
      await done();
    } catch (error) {
      const wrong = error.code === "unauthenticated" || error.code === "permission_denied";
      fill(failed, wrong ? h("div.problem", { role: "alert", data: { code: error.code } }, h("span.code", error.code), h("span.message", "The hub does not accept this token. It may be mistyped, expired or revoked.")) : problem(error));
      input.select();
      input.focus();
    } finally {
      button.disabled = false;
    }
  };
  fill(main,
    h("form.card.signin", { on: { submit } },
      h("h1", h("img", { src: "/portal/icon.svg", alt: "", width: 28, height: 28 }), info.name || "pinion hub"),
      text ? h("p", { role: "status" }, text) : null,
      user,
      h("div.field", h("label", { for: id }, "Token"), input),
      failed,
      h("div.actions", button),
      h("details", { open: !text }, h("summary", "Where is my token?"),
        h("p", "The hub wrote it to a file that only the file's owner can read, and printed the path when it first started. By default:"),
        h("pre.block", "cat ~/.pinion/hub/local.token"),
        h("p", "To create a token for yourself or another person:"),
        h("pre.block", "pinion hub token create --scope @you"))));
  input.focus();
}
