/** `node judge.mjs PROGRAM`: runs the compiled judge against the double, with one job and one runner. */
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { GitHub } from "../server.ts";

const github = await GitHub.start();
github.faults.expired = 1;
const made = setInterval(() => {
  if (github.set("judged") === undefined) return;
  clearInterval(made);
  github.set("judged").add("true");
}, 50);
const env = { ...process.env, GITHUB_ACTIONS_FORCE_GHES: "1" };
const judge = spawn(process.argv[2], [github.url, github.token], {
  env,
  stdio: ["ignore", "pipe", "inherit"],
});
createInterface({ input: judge.stdout }).on("line", (config) =>
  spawn(process.execPath, [new URL("../runner.mjs", import.meta.url).pathname], {
    env: { ...process.env, ACTIONS_RUNNER_INPUT_JITCONFIG: config },
    stdio: "inherit",
  }),
);
judge.once("exit", async (code) => {
  clearInterval(made);
  await github.stop();
  process.exitCode = code ?? 1;
});
