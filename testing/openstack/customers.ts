import { setTimeout as sleep } from "node:timers/promises";
import { paths } from "@nodeyard/model";
import { hexId, systemClock, systemRandom } from "@nodeyard/runtime";
import { lock, type Tree } from "@nodeyard/tree";
import { orNothing, patiently } from "../chaos/patience.ts";

type Fields = Record<string, unknown>;

/** Looks at a request this often; two hundred customers share two cores with a whole cloud. */
const LOOK_MS = 500;
const LOCK_MS = 30_000;

export interface Served {
  readonly request: string;
  readonly state: string;
  /** From the request to its end. */
  readonly ms: number;
  /** Host keys that the nodes were handed out with. */
  readonly hostKeys: readonly (readonly string[])[];
}

/** Asks for nodes as Zuul does (spec zookeeper.md 5.6 to 5.8), holds them for a moment and gives them back. */
export async function customer(tree: Tree, labels: readonly string[], limitMs: number): Promise<Served> {
  const started = performance.now();
  const seconds = Date.now() / 1000;
  const data = encode({
    state: "requested",
    state_time: seconds,
    node_types: labels,
    requestor: "zuul",
    requestor_data: { job_name: "unit" },
    provider: null,
    created_time: seconds,
    relative_priority: 0,
    event_id: hexId(systemRandom),
    tenant_name: "t1",
  });
  const { path } = await patiently(() => tree.create(`${paths.requests}/200-`, data, { sequential: true }));
  const request = path.slice(path.lastIndexOf("/") + 1);
  const end = (state: string, hostKeys: Served["hostKeys"] = []) => ({
    request,
    state,
    ms: performance.now() - started,
    hostKeys,
  });
  while (performance.now() - started < limitMs) {
    const record = await read(tree, path);
    if (record === undefined) return end("vanished");
    if (record.state === "failed") {
      await orNothing(() => tree.delete(path));
      return end("failed");
    }
    if (record.state === "fulfilled") return end("used", await use(tree, path, record.nodes as string[]));
    await sleep(LOOK_MS);
  }
  return end(`still ${(await read(tree, path))?.state}`);
}

async function use(tree: Tree, request: string, nodes: readonly string[]) {
  const keys: string[][] = [];
  const held = [];
  for (const id of nodes) {
    const own = { clock: systemClock, random: systemRandom, deadlineMs: LOCK_MS };
    held.push(await patiently(() => lock(tree, paths.nodeLock(id), own)));
    keys.push(((await read(tree, paths.node(id)))?.host_keys as string[] | undefined) ?? []);
    await write(tree, id, { state: "in-use" });
  }
  await orNothing(() => tree.delete(request));
  await sleep(1_000);
  for (const id of nodes) await write(tree, id, { state: "used" });
  for (const one of held) await patiently(() => one.release());
  return keys;
}

async function write(tree: Tree, id: string, fields: Fields): Promise<void> {
  const record = await read(tree, paths.node(id));
  const data = encode({ ...record, ...fields, state_time: Date.now() / 1000 });
  await patiently(() => tree.set(paths.node(id), data));
}

async function read(tree: Tree, path: string): Promise<Fields | undefined> {
  const found = await orNothing(() => tree.get(path));
  return found === undefined ? undefined : (JSON.parse(Buffer.from(found.data).toString()) as Fields);
}

function encode(value: Fields): Uint8Array {
  return Buffer.from(JSON.stringify(value));
}
