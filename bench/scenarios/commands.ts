import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline/promises";
import { fileURLToPath } from "node:url";
import { build } from "../../tools/build/build.ts";
import { pack } from "../../tools/build/release.ts";
import { installAll } from "../../tools/build/verify.ts";
import type { Figure, Scenario } from "../lib/scenario.ts";
import { round } from "../lib/statistics.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url)).replace(/\/$/, "");
const RUNS_PER_ROUND = 4;

export const commands: Scenario = {
  name: "commands",
  about:
    "the packages as they are installed: `nodeyard --version` and `list` on a running `up`, against `node -e 0`",
  async *run({ rounds }): AsyncGenerator<Figure> {
    const folder = mkdtempSync(join(tmpdir(), "nodeyard-commands-"));
    let up: ChildProcess | undefined;
    try {
      installAll(pack(await build(ROOT), join(folder, "files")), folder);
      const program = join(folder, "lib/node_modules/nodeyard/src/bin/nodeyard.cjs");
      const env = { ...process.env, NODE_COMPILE_CACHE: join(folder, "cache") };
      const place = ["--state", join(folder, "state")];
      up = await startUp([program, ...place, "-c", join(ROOT, "examples/fake.yaml"), "up"], env);
      yield* measure(
        { "--version": [program, "--version"], list: [program, ...place, "list"] },
        rounds * RUNS_PER_ROUND,
        env,
      );
    } finally {
      up?.kill("SIGTERM");
      if (up !== undefined) await once(up, "exit");
      rmSync(folder, { recursive: true, force: true });
    }
  },
};

type Env = Readonly<Record<string, string | undefined>>;

async function startUp(words: readonly string[], env: Env): Promise<ChildProcess> {
  const child = spawn(process.execPath, words, { env, stdio: ["ignore", "ignore", "pipe"] });
  for await (const line of createInterface({ input: child.stderr })) {
    if (!line.includes("Nodeyard is up")) continue;
    // Nobody reads its log from now on, and a full pipe must not stop it.
    child.stderr.resume();
    return child;
  }
  throw new Error("nodeyard up ended before it was up");
}

/** The shortest of `runs` runs each, all commands in turn: other load makes a run longer, never shorter. */
function* measure(
  asked: Readonly<Record<string, readonly string[]>>,
  runs: number,
  env: Env,
): Generator<Figure> {
  const all = { node: ["-e", "0"], ...asked };
  // The first run of each does not count: it fills the compile cache.
  const shortest = Object.fromEntries(Object.keys(all).map((name) => [name, Number.POSITIVE_INFINITY]));
  for (let run = 0; run <= runs; run++)
    for (const [name, words] of Object.entries(all)) {
      const began = performance.now();
      const { status, stderr } = spawnSync(process.execPath, words, { env, encoding: "utf8" });
      const ms = performance.now() - began;
      if (status !== 0) throw new Error(`${name} ended with ${status}: ${stderr}`);
      if (run > 0) shortest[name] = Math.min(shortest[name]!, ms);
    }
  const nodeMs = shortest.node!;
  for (const command of Object.keys(asked)) {
    const ms = shortest[command]!;
    yield {
      scenario: "commands",
      command,
      runs,
      nodeMs: round(nodeMs),
      ms: round(ms),
      ratio: round(ms / nodeMs),
    };
  }
}
