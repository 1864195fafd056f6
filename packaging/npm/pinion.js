#!/usr/bin/env node
// Runs the pinion binary of the package for this platform, with this process's input, output, signals and exit code.
"use strict";

const { spawn } = require("node:child_process");
const { pinionPath } = require("./index.js");

let path;
try {
  path = pinionPath();
} catch (error) {
  console.error(`pinion: ${error.message}`);
  process.exit(1);
}
const child = spawn(path, process.argv.slice(2), { stdio: "inherit" });
const signals = ["SIGINT", "SIGTERM", "SIGHUP"];
for (const signal of signals) {
  process.on(signal, () => child.kill(signal));
}
child.on("error", (error) => {
  console.error(`pinion: ${path} cannot be started: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => {
  if (signal === null) {
    process.exit(code);
  }
  // Ends by the signal that ended the binary.
  for (const known of signals) {
    process.removeAllListeners(known);
  }
  process.kill(process.pid, signal);
});
