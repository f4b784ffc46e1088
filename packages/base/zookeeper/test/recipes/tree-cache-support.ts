import {
  type Interest,
  openTreeCache,
  type TreeCache,
  type TreeCacheChange,
  type TreeCacheOptions,
  wire,
  type ZooKeeper,
  type ZooKeeperOptions,
} from "../../src/index.ts";
import { connect } from "./support.ts";

/** The shape of `/nodepool/nodes`: records directly below the root, each with a `lock` parent and contenders in it. */
export function nodeInterest(root: string): (path: string) => Interest {
  return (path) => {
    const parts = path.slice(root.length + 1).split("/");
    if (path === root) return "none";
    if (parts.length === 1) return "data";
    return parts.length === 3 && parts[1] === "lock" ? "name" : "none";
  };
}

/** Counts the requests that a client sends, by operation, and notes which paths it reads. */
export class Traffic {
  readonly operations = new Map<number, number>();
  readonly read: string[] = [];

  async connect(to: { readonly host: string; readonly port: number }, options: ZooKeeperOptions = {}) {
    const client = await connect(to, {
      ...options,
      hooks: {
        packetSent: (opCode) => {
          this.operations.set(opCode, (this.operations.get(opCode) ?? 0) + 1);
        },
      },
    });
    const { submit } = client;
    client.submit = ((request: wire.Request, ...rest: [never]) => {
      if (request.type === wire.OpCode.getData) this.read.push(request.path);
      submit.call(client, request, ...rest);
    }) as typeof submit;
    return client;
  }

  count(): {
    readonly get: number;
    readonly exists: number;
    readonly children: number;
    readonly watch: number;
  } {
    const of = (...codes: number[]) => codes.reduce((sum, code) => sum + (this.operations.get(code) ?? 0), 0);
    const { OpCode } = wire;
    return {
      get: of(OpCode.getData),
      exists: of(OpCode.exists),
      children: of(OpCode.getChildren, OpCode.getChildren2),
      watch: of(OpCode.addWatch),
    };
  }

  reset(): void {
    this.operations.clear();
    this.read.length = 0;
  }
}

/** A cache and all that it told. */
export interface Recorded {
  readonly cache: TreeCache;
  readonly changes: TreeCacheChange[];
}

export function record(client: ZooKeeper, root: string, options: Partial<TreeCacheOptions> = {}): Recorded {
  const changes: TreeCacheChange[] = [];
  const cache = openTreeCache(client, root, {
    interest: nodeInterest(root),
    ...options,
    onChange: (change) => changes.push(change),
  });
  return { cache, changes };
}

/** Short texts of changes: "put /a v1", "remove /a", "gap". */
export function texts(changes: readonly TreeCacheChange[], root: string): string[] {
  return changes.map((change) => {
    if (change.type === "gap" || change.type === "synced") return change.type;
    const path = change.path.slice(root.length + 1);
    if (change.type === "remove") return `remove ${path}`;
    return change.data === undefined ? `put ${path}` : `put ${path}=${text(change.data)}`;
  });
}

/** What the cache holds, as text. */
export function contents(cache: TreeCache): Record<string, string | null> {
  const found = [...cache.entries()].map(
    ([path, { data }]) =>
      [path.slice(cache.root.length + 1), data === undefined ? null : text(data)] as const,
  );
  return Object.fromEntries(found.sort(([a], [b]) => (a < b ? -1 : 1)));
}

function text(data: Uint8Array): string {
  return Buffer.from(data).toString();
}
