import type { Driver, ProviderConfig } from "@nodeyard/driver";
import { metastaticDriver } from "@nodeyard/driver-metastatic";
import { paths } from "@nodeyard/model";
import { seededRandom } from "@nodeyard/runtime";
import { Counters, memoryJournal, memoryLog } from "@nodeyard/telemetry";
import { expect } from "vitest";
import type { LauncherConfig } from "../../src/index.ts";
import { assemble } from "../../src/parts.ts";
import { fakeProvider, type Json, launcherConfig, World } from "../rules/world.ts";

export const OWNER = "NodePool:metastatic:slicer";

/** A metastatic provider as the program compiles it; `label` are the keys of label `slice`. */
export function slicer(label: Json = {}, pool: Json = {}, fields: Json = {}): ProviderConfig {
  const raw = {
    name: "slicer",
    driver: "metastatic",
    "boot-timeout": 5,
    ...fields,
    pools: [
      {
        name: "main",
        ...pool,
        labels: [
          { name: "slice", "backing-label": "large", "max-parallel-jobs": 2, "grace-time": 2, ...label },
        ],
      },
    ],
  };
  const problems: string[] = [];
  const config = metastaticDriver.config.load(raw, {
    labels: new Set(["slice", "large"]),
    diskimages: new Map(),
    report: ({ message }) => void problems.push(message),
  });
  if (config === undefined || problems.length > 0) throw new Error(problems.join("; "));
  return config;
}

/** The cloud of the backing nodes. */
export function metal(pool: Json = {}): ProviderConfig {
  const labels = [{ name: "large", "cloud-image": "image", "flavor-name": "Fake Flavor" }];
  return fakeProvider("metal", {}, { labels, "node-attributes": { site: "a", rack: "1" }, ...pool });
}

export function config(
  label: Json = {},
  pool: Json = {},
  providers: readonly ProviderConfig[] = [metal()],
  fields: Json = {},
): LauncherConfig {
  return launcherConfig([...providers, slicer(label, pool, fields)]);
}

/** A world whose requests are for slots. */
export class Lab extends World {
  slice(fields: Json = {}): Promise<string> {
    return this.ask({ node_types: ["slice"], ...fields });
  }

  /** A launcher's parts on a session of their own, none of them started. */
  parts(config: LauncherConfig) {
    const tree = this.cluster.connect({ name: "a", sessionTimeoutMs: 10_000 });
    const options = {
      tree,
      clock: this.clock,
      random: seededRandom(5),
      scan: { scan: async () => ({ address: "", family: 4 as const, hostKeys: [] }) },
      log: memoryLog(),
      journal: memoryJournal(10),
      counters: new Counters(),
      identity: { hostname: "a", fqdn: "a.example", version: "0" },
      driverOf: async () => metastaticDriver as unknown as Driver,
      config,
    };
    return { tree, ...assemble(options, "installation", () => config) };
  }

  /** Asks for a slot, and returns the node that it gets. */
  async get(fields: Json = {}): Promise<Json & { id: string }> {
    const request = await this.fulfilled(await this.slice(fields));
    const [id] = request.nodes as string[];
    return { ...this.node(id!)!, id: id! };
  }

  backings(): (Json & { id: string })[] {
    return this.nodes().filter(({ type }) => (type as string[]).includes("large"));
  }

  ends(): (Json & { id: string })[] {
    return this.nodes().filter(({ provider }) => provider === "slicer");
  }

  userData(id: string): Json {
    return JSON.parse(this.node(id)?.user_data as string) as Json;
  }

  place(node: Json): { backing: string; slot: number } {
    const { backing_node, slot } = node.driver_data as Json;
    return { backing: backing_node as string, slot: slot as number };
  }

  lockData(id: string): string[] {
    const parent = paths.nodeLock(id);
    return this.children(parent).map((name) => this.text(`${parent}/${name}`) ?? "");
  }

  /** Registered pools of the slots' provider, of whatever launcher. */
  pools(): string[] {
    const root = `${paths.components}/pool`;
    return this.children(root).filter((name) => this.json(`${root}/${name}`)?.provider_name === "slicer");
  }

  claims(backing: string): string[] {
    return this.children(`/nodeyard/slots/${backing}`);
  }

  /** What Zuul does with a node and its request at the end. */
  async giveBack(node: Json & { id: string }): Promise<void> {
    const request = node.allocated_to as string;
    await this.put(paths.node(node.id), { ...this.node(node.id), state: "used" });
    if (this.request(request) !== undefined) await this.settle(this.other.delete(paths.request(request)));
    await this.until(`${node.id} is gone`, () => this.node(node.id) === undefined);
  }

  async gone(id: string, limitMs?: number): Promise<void> {
    await this.until(`node ${id} is gone`, () => this.node(id) === undefined, limitMs);
  }

  /** Nothing is in two hands: each slot has one node, and each claim agrees with a record. */
  check(): void {
    const seen = new Map<string, string>();
    for (const node of this.ends()) {
      if (["deleting", "deleted", "failed", "init", "building", "aborted"].includes(node.state as string))
        continue;
      const { backing, slot } = this.place(node);
      expect(seen.get(`${backing}/${slot}`), `slot ${backing}/${slot} is given twice`).toBeUndefined();
      seen.set(`${backing}/${slot}`, node.id);
      const claim = this.json(`/nodeyard/slots/${backing}/${slot}`);
      expect(claim?.node, `claim of ${backing}/${slot}`).toBe(node.id);
    }
  }
}
