// Skills and context files on disk.

import { ops } from "pinion:ops";
import { parseFrontmatter } from "pinion:packages/coding_text";

export function createSyntheticSourceInfo(path, { source, scope = "temporary", origin = "top-level", baseDir }) {
  const info = { path, source, scope, origin };
  return baseDir === undefined ? info : { ...info, baseDir };
}

const parentOf = (path) => path.slice(0, Math.max(1, path.lastIndexOf("/")));

function skillAt(filePath, source, diagnostics) {
  try {
    const { frontmatter } = parseFrontmatter(ops.tools.readText(filePath) ?? "");
    const { description } = frontmatter;
    if (typeof description !== "string" || description.trim() === "") {
      diagnostics.push({ type: "warning", message: "description is required", path: filePath });
      return [];
    }
    const baseDir = parentOf(filePath);
    const scope = { user: "user", project: "project" }[source] ?? "temporary";
    return [{
      name: frontmatter.name || baseDir.split("/").at(-1), description, filePath, baseDir,
      sourceInfo: createSyntheticSourceInfo(filePath, { source: scope === "temporary" ? source : "local", scope, baseDir }),
      disableModelInvocation: frontmatter["disable-model-invocation"] === true,
    }];
  } catch (error) {
    diagnostics.push({ type: "warning", message: error.message, path: filePath });
    return [];
  }
}

function skillsBelow(directory, source, diagnostics, isTop) {
  const entries = JSON.parse(ops.tools.listDirectory(directory));
  if (entries.some(({ name, kind }) => name === "SKILL.md" && kind === "file")) return skillAt(`${directory}/SKILL.md`, source, diagnostics);
  return entries.flatMap(({ name, kind }) => {
    if (name.startsWith(".") || name === "node_modules") return [];
    if (kind === "directory") return skillsBelow(`${directory}/${name}`, source, diagnostics, false);
    return isTop && name.endsWith(".md") ? skillAt(`${directory}/${name}`, source, diagnostics) : [];
  });
}

export function loadSkillsFromDir({ dir, source }) {
  const diagnostics = [];
  return { skills: skillsBelow(dir, source, diagnostics, true), diagnostics };
}

/** Returns the skills of the user, of the project and of further directories; the first of a name wins. */
export function loadSkills({ cwd = ops.tools.workingDirectory(), agentDir = ops.tools.agentDirectory(), skillPaths = [], includeDefaults = true } = {}) {
  const places = includeDefaults ? [[`${agentDir}/skills`, "user"], [`${cwd}/.pi/skills`, "project"]] : [];
  const diagnostics = [];
  const found = new Map();
  const take = (skills) => {
    for (const skill of skills) {
      const winner = found.get(skill.name);
      if (winner === undefined) found.set(skill.name, skill);
      else if (winner.filePath !== skill.filePath) {
        diagnostics.push({ type: "collision", message: `name "${skill.name}" collision`, path: skill.filePath, collision: { resourceType: "skill", name: skill.name, winnerPath: winner.filePath, loserPath: skill.filePath } });
      }
    }
  };
  for (const [directory, source] of places) take(skillsBelow(directory, source, diagnostics, true));
  for (const given of skillPaths) {
    const path = ops.tools.resolve(given, cwd);
    if (path.endsWith(".md")) take(skillAt(path, "path", diagnostics));
    else take(skillsBelow(path, "path", diagnostics, true));
  }
  return { skills: [...found.values()], diagnostics };
}

const escaped = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;").replaceAll("'", "&apos;");

/** Formats the skills for the system prompt. */
export function formatSkillsForPrompt(skills) {
  const listed = skills.filter(({ disableModelInvocation }) => !disableModelInvocation);
  if (listed.length === 0) return "";
  const lines = listed.flatMap(({ name, description, filePath }) => [
    "  <skill>", `    <name>${escaped(name)}</name>`, `    <description>${escaped(description)}</description>`,
    `    <location>${escaped(filePath)}</location>`, "  </skill>",
  ]);
  return `\n\nSkills are instructions for particular tasks. When a task fits a description, read the file at its location first.\nPaths in a skill are relative to the directory of its file; use absolute paths in tool calls.\n\n<available_skills>\n${lines.join("\n")}\n</available_skills>`;
}

/** Returns AGENTS.md or CLAUDE.md of the user and of every directory from the root to the working directory. */
export function loadProjectContextFiles({ cwd = ops.tools.workingDirectory(), agentDir = ops.tools.agentDirectory() } = {}) {
  const parts = cwd.split("/").filter((part) => part !== "");
  const directories = [agentDir, "/", ...parts.map((_, at) => `/${parts.slice(0, at + 1).join("/")}`)];
  const files = [];
  for (const directory of new Set(directories)) {
    for (const name of ["AGENTS.md", "AGENTS.MD", "CLAUDE.md", "CLAUDE.MD"]) {
      const path = `${directory === "/" ? "" : directory}/${name}`;
      const content = ops.tools.readText(path);
      if (content !== undefined) { files.push({ path, content }); break; }
    }
  }
  return files;
}
