/**
 * Adds a tool that counts lines, words and characters of text files, so that the model need not read them.
 *
 *   pinion -e word-count-tool.ts "How long is README.md?"
 */
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import type { ExtensionAPI } from "@mariozechner/pi-coding-agent";
import { Type } from "typebox";

interface Count {
	path: string;
	lines: number;
	words: number;
	characters: number;
}

async function count(directory: string, path: string, signal: AbortSignal | undefined): Promise<Count> {
	const text = await readFile(resolve(directory, path), { encoding: "utf8", signal });
	return {
		path,
		lines: text.split("\n").length - (text.endsWith("\n") ? 1 : 0),
		words: text.split(/\s+/).filter(Boolean).length,
		characters: [...text].length,
	};
}

const row = ({ path, lines, words, characters }: Count) => `${path}: ${lines} lines, ${words} words, ${characters} characters`;

export default function (pi: ExtensionAPI) {
	pi.registerTool({
		name: "word_count",
		label: "Word count",
		description: "Counts lines, words and characters of text files",
		promptSnippet: "Count lines, words and characters of text files",
		promptGuidelines: ["Use word_count instead of reading a file when only its length matters."],
		parameters: Type.Object({
			paths: Type.Array(Type.String({ description: "Path of a text file" }), { minItems: 1, maxItems: 50 }),
		}),
		async execute(_id, { paths }, signal, onUpdate, ctx) {
			const counts: Count[] = [];
			const report = () => ({ content: [{ type: "text" as const, text: counts.map(row).join("\n") }], details: { counts: [...counts] } });
			for (const path of paths) {
				counts.push(await count(ctx.cwd, path, signal));
				if (counts.length < paths.length) onUpdate?.(report());
			}
			return report();
		},
	});

	pi.registerCommand("words", {
		description: "Count the words of a file",
		handler: async (path, ctx) => {
			const name = path.trim() || (await ctx.ui.input("Which file?", "README.md"));
			if (name) ctx.ui.notify(row(await count(ctx.cwd, name, ctx.signal)), "info");
		},
	});
}
