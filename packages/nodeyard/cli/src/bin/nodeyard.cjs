#!/usr/bin/env node
// What the shell starts. Plain CommonJS in the syntax of Node 10, because a Node that is too old for the program has to get as far as the
// line that says so: the program itself is not even read by it.
"use strict";
const needed = Number(/\d+/.exec(require("../../package.json").engines.node)[0]);
if (Number(process.versions.node.split(".")[0]) < needed) {
  console.error(
    `nodeyard: needs Node ${needed} or newer, and ${process.execPath} is ${process.version}; ` +
      `install Node ${needed} and put it first in PATH`,
  );
  process.exitCode = 1;
} else {
  start();
}

function start() {
  // Before anything else is loaded: what is loaded earlier is compiled anew each time.
  const folder = cacheFolder();
  if (folder !== undefined) require("node:module").enableCompileCache(folder);
  // As `node --disable-warning=ExperimentalWarning`, an option that a first line like ours cannot give on every system.
  const emitWarning = process.emitWarning;
  process.emitWarning = (warning, type, ...rest) => {
    if (type !== "ExperimentalWarning") emitWarning.call(process, warning, type, ...rest);
  };
  require("./nodeyard.ts");
}

// Compiled code is run unseen, so it lies where only this user can write: not in the system's folder for temporary files, which is Node's
// own choice, and not where an environment says that sudo may have kept. NODE_COMPILE_CACHE still names another place.
function cacheFolder() {
  const os = require("node:os");
  try {
    return require("node:path").join(os.userInfo().homedir, ".cache", "nodeyard");
  } catch {
    // A user id without a name, as containers have.
    return undefined;
  }
}
