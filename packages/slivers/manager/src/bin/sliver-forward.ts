#!/usr/bin/env node
import { writeSync } from "node:fs";
import { forward } from "../api/edge/forward.ts";

/** Accounts have folders of these names, so nothing else may get into a path. */
const NAME = /^[a-z][a-z0-9_]{0,31}$/;
/** The daemon's run folder; tests set another one. */
const FOLDER = process.env.NODEYARD_SLIVER_RUN ?? "/run/nodeyard-sliver";

/** The forced command `sliver-forward ACCOUNT`: reads one call from standard input and writes the answer to standard output. */
async function main(account: string | undefined): Promise<number> {
  if (account === "--version") {
    const { default: manifest } = await import("../../package.json", { with: { type: "json" } });
    say(`sliver-forward ${manifest.version}\n`);
    return 0;
  }
  if (account === undefined || !NAME.test(account)) {
    say("usage: sliver-forward ACCOUNT < call\n");
    return 2;
  }
  const { text, exitCode } = await forward(`${FOLDER}/${account}/api.sock`, process.stdin);
  say(text);
  return exitCode;
}

/** sshd may give a pipe that does not block, so a write that cannot be taken yet is repeated. */
function say(text: string): void {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; ) {
    try {
      at += writeSync(1, bytes, at);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EAGAIN") throw error;
    }
  }
}

process.exit(await main(process.argv[2]));
