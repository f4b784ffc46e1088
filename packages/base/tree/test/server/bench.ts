import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock, systemRandom } from "@nodeyard/runtime";
import { skip } from "../../../../../testing/skipped.ts";
import { findPython } from "../../../../../testing/zookeeper/kazoo.ts";
import { type EmbeddedTree, openEmbeddedTree } from "../../src/embedded/index.ts";
import type { ServerLimits } from "../../src/server/limits.ts";
import type { TcpOptions } from "../../src/server/peer.ts";
import { startTreeServer, type TreeServer } from "../../src/server/server.ts";

/** A server over a fresh embedded tree in a temporary folder, on loopback TCP and on its Unix socket. */
export interface Bench {
  readonly folder: string;
  readonly tree: EmbeddedTree;
  readonly server: TreeServer;
  /** `127.0.0.1:port`. */
  readonly hosts: string;
  /** Stops server and tree and starts both anew on the same folder and port. */
  restart(): Promise<void>;
  close(): Promise<void>;
}

export async function startBench(
  options: { limits?: Partial<ServerLimits>; tcp?: Partial<TcpOptions>; folder?: string } = {},
): Promise<Bench> {
  const { folder = mkdtempSync(join(tmpdir(), "nodeyard-server-")) } = options;
  const open = async (port: number) => {
    const tree = await openEmbeddedTree({ folder, clock: systemClock, random: systemRandom });
    const server = await startTreeServer({
      core: tree.core,
      clock: systemClock,
      socket: join(folder, "tree.sock"),
      tcp: { host: "127.0.0.1", port, ...options.tcp },
      ...(options.limits === undefined ? {} : { limits: options.limits }),
    }).catch(async (error: unknown) => {
      await tree.close();
      rmSync(folder, { recursive: true, force: true });
      throw error;
    });
    return { tree, server };
  };
  let now = await open(0);
  const hosts = `127.0.0.1:${now.server.port}`;
  const stop = async () => {
    await now.server.close();
    await now.tree.close();
  };
  return {
    folder,
    get tree() {
      return now.tree;
    },
    get server() {
      return now.server;
    },
    hosts,
    restart: async () => {
      const port = now.server.port ?? 0;
      await stop();
      now = await open(port);
    },
    close: async () => {
      await stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** For `describe.skipIf(requireKazoo())`: why there is no kazoo, or undefined. */
export function requireKazoo(): string | undefined {
  if (findPython() !== undefined) return undefined;
  return skip("tests with kazoo need a python3 that can import it", "/usr/lib/python3/dist-packages/kazoo");
}
