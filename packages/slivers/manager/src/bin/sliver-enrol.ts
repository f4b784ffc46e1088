#!/usr/bin/env node
import { readFileSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { messageOf, NodeyardError, systemClock, systemRandom } from "@nodeyard/runtime";
import manifest from "../../package.json" with { type: "json" };
import { apply, type Enrolled, plan } from "../enrol/edge/enrol.ts";
import { withdraw } from "../enrol/edge/withdraw.ts";
import { parseSettings } from "../enrol/settings.ts";
import { USAGES, usageText } from "../usage.ts";

/** Exit codes: 0 done; 1 failed, with the reason; 2 wrong usage. */
async function main([command, option, ...rest]: readonly string[]): Promise<number> {
  if (command === "--version") return say(`sliver-enrol ${manifest.version}\n`);
  if (rest.length > 0) return misused();
  const from = dirname(import.meta.filename);
  const tools = { clock: systemClock, random: systemRandom };
  if (command === "plan" && option === undefined) return tell(await plan(settings(), from, systemClock));
  if (command === "apply" && option === undefined) return tell(await apply(settings(), from, tools));
  if (command === "withdraw" && (option === undefined || option === "--dry-run"))
    return tell(await withdraw(systemClock, from, option === "--dry-run"));
  return misused();
}

/** From standard input: the arguments of a process can be read by every user. Throws EnrolError. */
function settings(): ReturnType<typeof parseSettings> {
  return parseSettings(readFileSync(0, "utf8"));
}

function misused(): number {
  writeSync(2, usageText(USAGES["sliver-enrol"]));
  return 2;
}

/** The answer that `nodeyard sliverd install` reads. */
function tell(enrolled: Enrolled): number {
  return say(`${JSON.stringify(enrolled)}\n`);
}

/** All of it, because the other end parses it: a pipe may take it in pieces. */
function say(text: string): number {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; ) at += writeSync(1, bytes, at);
  return 0;
}

try {
  process.exit(await main(process.argv.slice(2)));
} catch (error) {
  const known = error instanceof NodeyardError || (error as NodeJS.ErrnoException).code !== undefined;
  writeSync(2, `${known ? messageOf(error) : (error as Error).stack}\n`);
  process.exit(1);
}
