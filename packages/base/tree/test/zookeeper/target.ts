import { seededRandom, systemClock } from "@nodeyard/runtime";
import { startProxy, type TcpProxy, type ZooKeeperServer } from "../../../../../testing/zookeeper/index.ts";
import type { Tree } from "../../src/contract.ts";
import { connectZooKeeperTree } from "../../src/zookeeper/index.ts";
import type { Target } from "../suite/index.ts";

/** A busy machine keeps the client or the server from running for seconds; no session may end by that. */
const SESSION_MS = 4_000;

/** Sessions with a real server, each behind a proxy of its own so that its connection can be cut. */
export async function zooKeeperTarget(
  start: () => Promise<Pick<ZooKeeperServer, "host" | "port" | "stop">>,
): Promise<Target> {
  const server = await start();
  const proxies = new Map<Tree, TcpProxy>();
  const random = seededRandom(3);
  return {
    clock: systemClock,
    connect: async () => {
      const proxy = await startProxy(server);
      const tree = await connectZooKeeperTree({
        servers: `${proxy.host}:${proxy.port}`,
        clock: systemClock,
        random,
        sessionTimeoutMs: SESSION_MS,
        resyncSpreadMs: 0,
      });
      proxies.set(tree, proxy);
      return tree;
    },
    disconnect: async (tree) => {
      const noticed = Promise.withResolvers<void>();
      const stop = tree.onSession(({ state }) => state === "suspended" && noticed.resolve());
      proxies.get(tree)?.cut();
      await noticed.promise;
      stop();
    },
    expire: async (tree) => {
      const proxy = proxies.get(tree);
      const { epoch } = tree.session();
      proxy?.refuse(true);
      proxy?.cut();
      // The server alone ends a session: wait until it has, with room to spare.
      await new Promise((resolve) => setTimeout(resolve, 2 * SESSION_MS));
      proxy?.refuse(false);
      while (tree.session().epoch === epoch) await new Promise((resolve) => setTimeout(resolve, 10));
    },
    stop: async () => {
      await Promise.all([...proxies.values()].map((proxy) => proxy.close()));
      await server.stop();
    },
  };
}
