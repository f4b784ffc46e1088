import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { Victim } from "../chaos/victim.ts";
import { startZooKeeper } from "../zookeeper/index.ts";

// Two launchers with different labels, restarted one after the other while Zuul's client (zuul-client.py) asks for both. argv: a Python
// with the package `zuul`.

const [python] = process.argv.slice(2);
if (python === undefined) throw new Error("usage: rolling-restart.ts PYTHON");
const folder = mkdtempSync(join(tmpdir(), "nodeyard-zuul-"));
const zookeeper = await startZooKeeper();

function launcher(label: string, servers: number): Victim {
  const file = join(folder, `${label}.yaml`);
  writeFileSync(
    file,
    `
zookeeper-servers: [{host: 127.0.0.1, port: ${zookeeper.port}}]
labels: [{name: ${label}}]
providers:
  - name: p-${label}
    driver: fake
    cloud: memory
    fake: {latency: {read: 2000}}
    cloud-images: [{name: i, username: zuul}]
    pools: [{name: main, max-servers: ${servers}, labels: [{name: ${label}, cloud-image: i, min-ram: 1}]}]
`,
  );
  return new Victim(["--state", join(folder, label), "-c", file, "launcher", "--no-webapp"]);
}

async function runs(victim: Victim): Promise<Victim> {
  if (!(await victim.printed("the launcher runs"))) throw new Error(victim.errors);
  return victim;
}

const running: Victim[] = [];
try {
  let [a, b] = await Promise.all([runs(launcher("la", 1)), runs(launcher("lb", 50))]);
  running.push(a, b);
  const script = fileURLToPath(new URL("zuul-client.py", import.meta.url));
  const client = spawn(python, [script, `127.0.0.1:${zookeeper.port}`], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const lines = createInterface({ input: client.stdout })[Symbol.asyncIterator]();
  if ((await lines.next()).value !== "ready") throw new Error("Zuul's client got no first node");
  // In order, in order, and by force.
  await a.signal("SIGTERM");
  a = await runs(launcher("la", 1));
  running.push(a);
  await b.signal("SIGTERM");
  b = await runs(launcher("lb", 50));
  running.push(b);
  await a.signal("SIGKILL");
  running.push(await runs(launcher("la", 1)));
  client.stdin.end();
  const said = (await lines.next()).value as string | undefined;
  if (client.exitCode === null) await once(client, "exit");
  const states = Object.values(JSON.parse(said ?? "{}") as Record<string, string>);
  const others = states.filter((state) => state !== "fulfilled");
  console.log(
    `${states.length} requests of Zuul, ${others.length} not fulfilled ${[...new Set(others)].join(", ")}`,
  );
  if (states.length < 5 || others.length > 0) process.exitCode = 1;
} finally {
  await Promise.all(running.map((victim) => victim.signal("SIGKILL")));
  await zookeeper.stop();
  rmSync(folder, { recursive: true, force: true });
}
