// Loads one file and runs what it exports; for trying a script on its own.
export async function run(path, ...args) {
  const module = await import(path);
  const entry = module.default;
  return typeof entry === "function" ? await entry(...args) : entry;
}
