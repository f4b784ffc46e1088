#!/usr/bin/env node
/**
 * A runner of Gitea Actions in the place of act_runner, which no registry has: it reads the same `.runner` file, takes one task by the same
 * protocol, runs the `run` lines of its steps by sh, and ends. `NODEYARD_RUNNER_FAULT`: `never` looks for no task.
 */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

const { address, uuid, token, labels } = JSON.parse(readFileSync(".runner", "utf8"));

async function call(method, body) {
  for (;;) {
    const reply = await fetch(`${address}/api/actions/runner.v1.RunnerService/${method}`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-runner-uuid": uuid, "x-runner-token": token },
      body: JSON.stringify(body),
    }).catch(() => undefined);
    if (reply?.ok) return reply.json();
    // As act_runner: a server that is away comes back; a runner that it does not know any more ends.
    const why = await reply?.text();
    if (why?.includes("unregistered")) process.exit(3);
    await sleep(1_000);
  }
}

if (process.env.NODEYARD_RUNNER_FAULT === "never") await sleep(2 ** 31 - 1);
await call("Declare", { version: "player", labels: labels.map((label) => label.split(":")[0]) });
let task;
// The version of all tasks is not sent: each call looks for one.
for (; task === undefined; await sleep(task === undefined ? 200 : 0))
  ({ task } = await call("FetchTask", { tasksVersion: "0" }));

const text = Buffer.from(task.workflowPayload, "base64").toString();
const lines = [...text.matchAll(/^\s*- run: (.*)$/gm)].map(([, line]) => line);
const startedAt = new Date().toISOString();
const ran = spawnSync("sh", ["-c", lines.join("\n")], { encoding: "utf8" });
const rows = `${ran.stdout}${ran.stderr}`.split("\n").map((content) => ({ time: startedAt, content }));
await call("UpdateLog", { taskId: task.id, index: "0", rows, noMore: true });
const result = ran.status === 0 ? "RESULT_SUCCESS" : "RESULT_FAILURE";
await call("UpdateTask", {
  state: { id: task.id, result, startedAt, stoppedAt: new Date().toISOString(), steps: [] },
});
