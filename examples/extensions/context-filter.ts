/**
 * Reduces the cost of a long session: the model receives the newest tool results in full, and one line in place of each older,
 * long one. The session file still contains everything.
 *
 *   pinion -e context-filter.ts --keep-results 5
 */
import type { ExtensionAPI } from "@mariozechner/pi-coding-agent";

const LONG = 200;
const DEFAULT_KEPT = 8;

const textOf = (content: { type: string; text?: string }[]) => content.map((block) => block.text ?? "").join("");

export default function (pi: ExtensionAPI) {
	pi.registerFlag("keep-results", { type: "string", description: `Tool results the model sees in full (${DEFAULT_KEPT})` });

	let enabled = true;
	let saved = 0;

	pi.on("context", (event) => {
		saved = 0;
		if (!enabled) return;
		const kept = Number(pi.getFlag("keep-results") ?? DEFAULT_KEPT);
		const results = event.messages.filter((message) => message.role === "toolResult");
		const old = new Set(results.slice(0, Math.max(0, results.length - kept)));
		const messages = event.messages.map((message) => {
			if (message.role !== "toolResult" || !old.has(message)) return message;
			const length = textOf(message.content).length;
			if (length <= LONG) return message;
			saved += length;
			const note = `[${message.toolName} gave ${length} characters here; call it again if you need them]`;
			return { ...message, content: [{ type: "text" as const, text: note }] };
		});
		return { messages };
	});

	pi.on("agent_end", (_event, ctx) => {
		ctx.ui.setStatus("context-filter", saved > 0 ? `${saved} characters left out` : undefined);
	});

	pi.registerCommand("context-filter", {
		description: "Turn the filter on or off, or show its state",
		handler: async (argument, ctx) => {
			const state = argument.trim();
			if (state === "on" || state === "off") enabled = state === "on";
			ctx.ui.notify(enabled ? `On: ${saved} characters left out of the last request` : "Off", "info");
		},
	});
}
