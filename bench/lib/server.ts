import { connect, type ZooKeeper } from "@nodeyard/zookeeper";
import {
  BENCH_JVM_OPTIONS,
  requireZooKeeper,
  startZooKeeper,
  type ZooKeeperServer,
} from "../../testing/zookeeper/index.ts";

/** A ZooKeeper for one scenario, with a client for everybody except the launcher. */
export interface Server extends AsyncDisposable {
  readonly zookeeper: ZooKeeperServer;
  /** `host:port`. */
  readonly address: string;
  readonly client: ZooKeeper;
}

/** Starts a server as a user runs it: data synced to disk, the JVM's own compilers. */
export async function startServer(): Promise<Server> {
  const missing = requireZooKeeper();
  if (missing !== undefined) throw new Error(`the bench needs ${missing}`);
  const zookeeper = await startZooKeeper({ jvmBase: BENCH_JVM_OPTIONS });
  const address = `${zookeeper.host}:${zookeeper.port}`;
  const client = await connect(address, { sessionTimeoutMs: 60_000 });
  const stop = async () => {
    await client.close();
    await zookeeper.stop();
  };
  return { zookeeper, address, client, [Symbol.asyncDispose]: stop };
}
