import { burst } from "../lib/burst.ts";
import { launcherConfig } from "../lib/config.ts";
import { type LauncherProcess, startLauncher } from "../lib/launcher.ts";
import { nodesLeft, Requester } from "../lib/requester.ts";
import type { Figure, Scenario } from "../lib/scenario.ts";
import { type Server, startServer } from "../lib/server.ts";

const LIMIT_MS = 60_000;

/** Requests that ready nodes can serve: nothing is launched for them. */
async function onReadyNodes(
  scenario: string,
  server: Server,
  launcher: LauncherProcess,
  count: number,
): Promise<Figure> {
  const requester = await Requester.open(server.client);
  await nodesLeft(server.client, count, LIMIT_MS);
  const { results: _results, ...figure } = await burst(requester, launcher, count);
  return { scenario, requests: count, ...figure, peakMemoryMib: launcher.peakMemoryMib() };
}

export const reuse: Scenario = {
  name: "reuse",
  about: "100 ready nodes of min-ready, 100 requests at once",
  async *run(): AsyncGenerator<Figure> {
    await using server = await startServer();
    await using launcher = await startLauncher(
      server.client,
      launcherConfig({ ...server, minReady: 100 }),
      1,
    );
    yield await onReadyNodes("reuse", server, launcher, 100);
  },
};

export const staticNodes: Scenario = {
  name: "static",
  about: "200 static nodes without live checks, 200 requests at once",
  async *run(): AsyncGenerator<Figure> {
    await using server = await startServer();
    await using launcher = await startLauncher(
      server.client,
      launcherConfig({ ...server, staticHosts: 200 }),
      1,
    );
    yield await onReadyNodes("static", server, launcher, 200);
  },
};
