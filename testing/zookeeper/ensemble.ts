import { setTimeout as sleep } from "node:timers/promises";
import { patience } from "../patience.ts";
import { freePort } from "./ports.ts";
import { startZooKeeper, type ZooKeeperServer } from "./server.ts";

export interface Ensemble {
  readonly servers: readonly ZooKeeperServer[];
  /** `host:port,host:port,...` of all members. */
  readonly connectionString: string;
  /** The member that leads now; waits for an election to end, 30 s at most. */
  leader(): Promise<ZooKeeperServer>;
  stop(): Promise<void>;
}

/** Starts `size` servers that form one ensemble, and waits until all of them serve. */
export async function startEnsemble(
  size: number,
  config: Readonly<Record<string, string>> = {},
): Promise<Ensemble> {
  const members: Record<string, string> = {};
  for (let id = 1; id <= size; id++) {
    members[`server.${id}`] = `127.0.0.1:${await freePort()}:${await freePort()}`;
  }
  const servers = await Promise.all(
    Array.from({ length: size }, (_, index) =>
      startZooKeeper({ myid: index + 1, config: { ...members, ...config }, wait: false }),
    ),
  );
  const stop = async () => {
    await Promise.all(servers.map((server) => server.stop()));
  };
  try {
    await Promise.all(servers.map((server) => server.ready()));
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    servers,
    connectionString: servers.map((server) => `${server.host}:${server.port}`).join(","),
    leader: () => findLeader(servers),
    stop,
  };
}

async function findLeader(servers: readonly ZooKeeperServer[]): Promise<ZooKeeperServer> {
  for (let attempt = 0; attempt < 600 * patience(); attempt++) {
    for (const server of servers) {
      const answer = await server.command("srvr").catch(() => "");
      if (answer.includes("Mode: leader")) return server;
    }
    await sleep(50);
  }
  throw new Error("no member of the ensemble leads");
}
