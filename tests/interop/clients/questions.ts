// A tool that asks the user three times and tells what it heard.
import type { ExtensionAPI } from "@mariozechner/pi-coding-agent";
import { Type } from "typebox";

export default function (pi: ExtensionAPI) {
	pi.registerTool({
		name: "questions",
		label: "Questions",
		description: "Asks the user",
		parameters: Type.Object({}),
		async execute(_id, _parameters, _signal, _update, ctx) {
			const sure = await ctx.ui.confirm("Sure?", "There is no way back.");
			const colour = await ctx.ui.select("Which colour?", ["red", "green"]);
			const name = await ctx.ui.input("Your name?");
			ctx.ui.notify("Thank you.", "info");
			return { content: [{ type: "text", text: JSON.stringify({ sure, colour, name }) }], details: {} };
		},
	});
}
