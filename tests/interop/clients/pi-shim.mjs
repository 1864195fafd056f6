// For clients that insist on `node <script>`: the script that is `pi`, whichever that is on the PATH.
import { spawn } from "node:child_process";

const pi = spawn("pi", process.argv.slice(2), { stdio: "inherit" });
for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) process.on(signal, () => pi.kill(signal));
pi.on("exit", (code) => process.exit(code ?? 1));
