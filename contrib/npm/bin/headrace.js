#!/usr/bin/env node
// Runs the command of this platform's package, with its signals and its exit code.
"use strict";
const { spawn } = require("node:child_process");
const { constants } = require("node:os");

const platform = `${process.platform}-${process.arch}`;
const file = process.platform === "win32" ? "headrace.exe" : "headrace";

let binary;
try {
  binary = require.resolve(`@headrace/${platform}/bin/${file}`);
} catch {
  console.error(`headrace: the package @headrace/${platform} is not installed: either there is none for this platform,`);
  console.error("or npm was told to leave optional dependencies out (--omit=optional, --no-optional)");
  process.exit(2);
}

const child = spawn(binary, process.argv.slice(2), { stdio: "inherit", argv0: "headrace" });
child.on("error", (error) => {
  console.error(`headrace: start ${binary}: ${error.message}`);
  process.exit(2);
});

// A terminal sends Ctrl-C, and the news that it closes, to every process in it. The child has those
// already, and would take a second one as the order to abandon its calls.
const terminal = [0, 1, 2].some((fd) => require("node:tty").isatty(fd));
for (const signal of ["SIGINT", "SIGHUP", "SIGTERM"]) {
  process.on(signal, () => {
    if (signal === "SIGTERM" || !terminal) child.kill(signal);
  });
}
child.on("exit", (code, signal) => process.exit(signal ? 128 + constants.signals[signal] : code));
