import type { ZooKeeper } from "@nodeyard/zookeeper";
import { inParallel } from "../floor.ts";
import { launcherConfig } from "../lib/config.ts";
import { startLauncher } from "../lib/launcher.ts";
import { LABEL } from "../lib/records.ts";
import { Requester } from "../lib/requester.ts";
import type { Figure, Scenario } from "../lib/scenario.ts";
import { startServer } from "../lib/server.ts";
import { round } from "../lib/statistics.ts";
import { startTap, type Tap } from "../lib/tap.ts";

const REQUESTS = 1_000;
const LIMIT_MS = 120_000;

export const operations: Scenario = {
  name: "operations",
  about:
    "the launcher's messages to the server per request, counted on the wire; and its round trips when idle",
  async *run(): AsyncGenerator<Figure> {
    await using server = await startServer();
    await using tap = await startTap(server.address);
    await using _launcher = await startLauncher(server.client, launcherConfig(tap), 1);
    const requester = await Requester.open(server.client);
    // The first request on a tree creates the roots of the contract.
    await requester.fulfilled(await requester.submit(LABEL, 1), LIMIT_MS);
    tap.reset();
    await requester.fulfilled(await requester.submit(LABEL, 1), LIMIT_MS);
    yield {
      scenario: "operations",
      case: "idle",
      requests: 1,
      ...perRequest(tap, 1),
      roundTrips: tap.counts().roundTrips,
    };
    for (const locked of [false, true]) {
      tap.reset();
      tap.holdBack();
      const ids = await requester.submit(LABEL, REQUESTS);
      if (locked) await makeLockParents(server.client, ids);
      tap.resume();
      await requester.fulfilled(ids, LIMIT_MS);
      const which = locked ? "lock parents exist" : "at once";
      yield { scenario: "operations", case: which, requests: REQUESTS, ...perRequest(tap, REQUESTS) };
    }
    yield* limited();
  },
};

/** With limits of pool and cloud: each created node writes its ledgers. */
async function* limited(): AsyncGenerator<Figure> {
  await using server = await startServer();
  await using tap = await startTap(server.address);
  await using _launcher = await startLauncher(server.client, launcherConfig({ ...tap, limited: true }), 1);
  const requester = await Requester.open(server.client);
  await requester.fulfilled(await requester.submit(LABEL, 1), LIMIT_MS);
  tap.reset();
  await requester.fulfilled(await requester.submit(LABEL, 1), LIMIT_MS);
  yield { scenario: "operations", case: "idle, with limits", requests: 1, ...perRequest(tap, 1) };
  tap.reset();
  tap.holdBack();
  const ids = await requester.submit(LABEL, REQUESTS);
  tap.resume();
  await requester.fulfilled(ids, LIMIT_MS);
  yield {
    scenario: "operations",
    case: "at once, with limits",
    requests: REQUESTS,
    ...perRequest(tap, REQUESTS),
  };
}

function perRequest(tap: Tap, count: number) {
  const { packets, subOperations, byOperation } = tap.counts();
  return {
    packetsPerRequest: round(packets / count),
    subOperationsPerRequest: round(subOperations / count),
    packets: JSON.stringify(byOperation),
  };
}

/** Lock parents, as of requests that a launcher has locked before. */
async function makeLockParents(client: ZooKeeper, ids: readonly string[]): Promise<void> {
  await client.ensurePath("/nodepool/requests-lock");
  await inParallel(ids, 256, async (id) => void (await client.create(`/nodepool/requests-lock/${id}`)));
}
