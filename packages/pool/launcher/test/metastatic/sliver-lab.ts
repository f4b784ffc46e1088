import { generateKeyPairSync } from "node:crypto";
import type { Scanner } from "@nodeyard/driver";
import type { SliverAccess } from "@nodeyard/driver-metastatic";
import { newSigningKeys, type SigningKeys, SliverUnreachableError } from "@nodeyard/sliver-protocol";
import { MemoryNode } from "../../../../../testing/slivers/memory-node.ts";
import type { LauncherConfig } from "../../src/index.ts";
import { config, Lab, metal } from "./lab.ts";

export const KEY = `ssh-ed25519 ${Buffer.concat([Buffer.from("0000000b7373682d6564323535313900000020", "hex"), Buffer.alloc(32, 7)]).toString("base64")}`;
export const ISOLATED = {
  isolation: "sliver",
  sliver: { "cpu-guarantee": 500, "memory-guarantee": 256, memory: 512, "authorized-keys": [KEY] },
};

const FIRST_PORT = 22_000;

export const key = () => generateKeyPairSync("ed25519").privateKey;

/** Backing nodes that are sliver hosts, each by its address. */
export class SliverLab extends Lab {
  keys: SigningKeys = newSigningKeys(key());
  readonly hosts = new Map<string, MemoryNode>();
  /** Addresses that nobody enrolled. */
  readonly bare = new Set<string>();

  readonly access: SliverAccess = {
    keys: () => this.keys,
    connect: ({ host }) => {
      if (this.bare.has(host))
        throw new SliverUnreachableError("no answer through ssh: Permission denied (publickey)");
      return this.hostAt(host).client;
    },
  };

  /** Each sliver's server has a key that says where it is. */
  readonly scan: Scanner = {
    scan: async ({ host, port }) => ({
      address: host,
      family: 4,
      hostKeys: [`ssh-ed25519 key-of-${host}:${port}`],
    }),
  };

  hostAt(address: string): MemoryNode {
    let node = this.hosts.get(address);
    if (node === undefined) {
      node = new MemoryNode({
        name: `host-${address}`,
        clock: this.clock,
        keySet: this.keys.keySet,
        capacity: { cpu: 4000, memory: 4_194_304 },
      });
      node.machine.firstPort = FIRST_PORT;
      this.hosts.set(address, node);
      void node.start();
    }
    return node;
  }

  /** `more`: of the launcher's own configuration. */
  begin(name: string, label = {}, more: Partial<LauncherConfig> = {}) {
    return this.start(
      name,
      { ...config({ ...ISOLATED, ...label }, {}, [metal()]), ...more },
      { slivers: this.access, scan: this.scan },
    );
  }

  get running(): string[] {
    return [...this.hosts.values()].flatMap((host) => host.running).sort();
  }

  get made(): number {
    return [...this.hosts.values()].reduce((sum, { machine }) => sum + machine.made.size, 0);
  }
}
