#!/usr/bin/env node
/**
 * A runner for the double of GitHub: it reads its configuration where the real one does, takes one job, runs its line by sh, and ends.
 * `NODEYARD_RUNNER_FAULT`: `never` looks for no job.
 */
import { spawnSync } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";

const { url, secret } = JSON.parse(
  Buffer.from(process.env.ACTIONS_RUNNER_INPUT_JITCONFIG, "base64").toString(),
);
delete process.env.ACTIONS_RUNNER_INPUT_JITCONFIG;

async function call(what, body) {
  for (;;) {
    const reply = await fetch(`${url}/${what}`, {
      method: "POST",
      body: JSON.stringify({ secret, ...body }),
    }).catch(() => undefined);
    if (reply?.ok) return what === "next" ? reply.json() : undefined;
    // A runner that was removed ends.
    if (reply?.status === 404) process.exit(3);
    await sleep(500);
  }
}

if (process.env.NODEYARD_RUNNER_FAULT === "never") await sleep(2 ** 31 - 1);
let line = null;
for (; line === null; await sleep(line === null ? 200 : 0)) ({ line } = await call("next"));
const { status } = spawnSync("sh", ["-c", line], { stdio: "ignore" });
await call("end", { result: status === 0 ? "succeeded" : "failed" });
