import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { patience } from "../patience.ts";
import { requireTools } from "../skipped.ts";
import { adopt } from "../zookeeper/children.ts";
import { freePort } from "../zookeeper/ports.ts";

/** Of boskos and boskosctl. */
export const BOSKOS_FOLDER =
  process.env.NODEYARD_BOSKOS ?? join(process.env.HOME ?? "/root", ".cache/nodeyard/boskos");

/** For `describe.skipIf(requireBoskos())`: why the real Boskos is not there, or undefined. Builds it where Go is, the first time. */
export function requireBoskos(): string | undefined {
  const missing = requireTools("tests with the real Boskos", "go");
  if (missing !== undefined) return missing;
  const { status, stderr } = spawnSync(join(import.meta.dirname, "boskos.sh"), [BOSKOS_FOLDER], {
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`cannot build Boskos: ${stderr}`);
  return undefined;
}

/** How a run of the real client ended. */
export interface Ran {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** Runs the real boskosctl. `signal` interrupts it. */
export function boskosctl(words: readonly string[], signal?: AbortSignal): Promise<Ran> {
  const child = spawn(join(BOSKOS_FOLDER, "boskosctl"), words, { stdio: ["ignore", "pipe", "pipe"] });
  const ended = adopt(child);
  signal?.addEventListener("abort", () => child.kill("SIGKILL"));
  const text = { out: "", err: "" };
  for (const [stream, name] of [[child.stdout, "out"] as const, [child.stderr, "err"] as const])
    stream.setEncoding("utf8").on("data", (part: string) => {
      text[name] += part;
    });
  return ended.then(() => ({ code: child.exitCode, ...text }));
}

/** The real server with its resources in memory. */
export async function startBoskos(config: string): Promise<{ readonly url: string; stop(): Promise<void> }> {
  const folder = mkdtempSync(join(tmpdir(), "nodeyard-boskos-"));
  const path = join(folder, "config.yaml");
  writeFileSync(path, config);
  const [port, metrics, health, pprof] = await Promise.all([freePort(), freePort(), freePort(), freePort()]);
  const ports = [
    `-port=${port}`,
    `-metrics-port=${metrics}`,
    `-health-port=${health}`,
    `-pprof-port=${pprof}`,
  ];
  const child = spawn(join(BOSKOS_FOLDER, "boskos"), ["-in_memory", `-config=${path}`, ...ports], {
    stdio: "ignore",
  });
  const ended = adopt(child);
  const stop = async () => {
    child.kill("SIGKILL");
    await ended;
    rmSync(folder, { recursive: true, force: true });
  };
  const url = `http://127.0.0.1:${port}`;
  for (let attempt = 0; attempt < 500 * patience() && child.exitCode === null; attempt++) {
    if (
      await fetch(url).then(
        ({ ok }) => ok,
        () => false,
      )
    )
      return { url, stop };
    await sleep(20);
  }
  await stop();
  throw new Error("the real Boskos did not start");
}
