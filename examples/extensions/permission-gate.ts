/**
 * Asks before the agent runs a shell command, unless every program in it is known to be harmless.
 *
 * It lists allowed programs, not forbidden ones: there are too many ways to spell `rm`. It also asks about a command with shell
 * syntax that this file does not understand. Without a user interface it refuses such commands.
 *
 *   pinion -e permission-gate.ts --gate-allow "cargo,make"
 */
import type { ExtensionAPI } from "@mariozechner/pi-coding-agent";
import { isToolCallEventType } from "@mariozechner/pi-coding-agent";

const HARMLESS = ["cat", "echo", "grep", "head", "ls", "pwd", "sort", "tail", "true", "wc"];

/** Returns the programs that a command starts, or `undefined` if it has syntax that is not understood. */
function programs(command: string): string[] | undefined {
	if (/[`$<>(){}\\\n]/.test(command)) return undefined;
	return command
		.split(/&&|\|\||[;|&]/)
		.map((part) => part.trim().split(/\s+/)[0])
		.filter((name) => name !== "");
}

export default function (pi: ExtensionAPI) {
	pi.registerFlag("gate-allow", { type: "string", description: "Further programs that may run without a question" });

	const allowed = new Set(HARMLESS);
	pi.on("session_start", () => {
		const more = pi.getFlag("gate-allow");
		if (typeof more === "string") for (const name of more.split(",")) allowed.add(name.trim());
	});

	pi.on("tool_call", async (event, ctx) => {
		if (!isToolCallEventType("bash", event)) return;
		const { command } = event.input;
		const started = programs(command);
		const unknown = started?.filter((name) => !allowed.has(name));
		if (unknown?.length === 0) return;
		if (!ctx.hasUI) return { block: true, reason: "This command needs approval, and no user interface is available." };

		const always = unknown?.length === 1 ? `Always allow ${unknown[0]}` : undefined;
		const choice = await ctx.ui.select(`Run this command?\n\n  ${command}`, ["Once", ...(always ? [always] : []), "No"]);
		if (choice === always && unknown) allowed.add(unknown[0]);
		if (choice === "Once" || (always && choice === always)) return;
		return { block: true, reason: "The user did not allow this command." };
	});
}
