import {
  type CreateOrder,
  DriverError,
  type ExternalId,
  NoAnswer,
  type Provider,
  runSteps,
  type Tag,
} from "@nodeyard/driver";
import { createOpenstackDriver } from "@nodeyard/driver-openstack";
import { systemClock as clock } from "@nodeyard/runtime";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { CloudUser } from "../admin.ts";
import { counted } from "../counted.ts";
import { compile, contextOf, empty, hostOf } from "../rig.ts";
import { OpenstackSite } from "../site.ts";

let site: OpenstackSite;
let user: CloudUser;
const { signal } = new AbortController();

beforeAll(() => {
  site = OpenstackSite.start("reads");
  user = new CloudUser(site, "nodeyard");
});

beforeEach(() => empty(user));

afterAll(async () => {
  site.faults({});
  await empty(user);
  await user.close();
});

const RUN_MS = 90_000;

test.each([
  [1, 0.5],
  [20, 0.1],
])("%i nodes at once, slow to come and to go: at most %f reads per second and node", async (nodes, most) => {
  site.faults({ spawn_delay: [8, 20], destroy_delay: [3, 8] });
  const { host, counts } = counted(hostOf(site));
  const config = compile({
    pools: [
      {
        name: "main",
        networks: ["nodeyard"],
        "auto-floating-ip": false,
        labels: [{ name: "small", "cloud-image": "fake", "flavor-name": "small" }],
      },
    ],
  });
  const provider = await createOpenstackDriver(host).open(config, contextOf("reads"));
  // What is read once and used by all that follow.
  await provider.need(config.pools[0]!.labels.get("small")!, signal);
  counts.reads = 0;
  counts.changes = 0;
  const until = clock.monotonic() + RUN_MS;
  let busyMs = 0;
  let lives = 0;
  const failed = { refused: 0, unanswered: 0 };
  await Promise.all(
    Array.from({ length: nodes }, async (_, lane) => {
      for (let round = 0; clock.monotonic() < until; round++) {
        const started = clock.monotonic();
        await life(provider, config, String(lane * 1_000 + round).padStart(10, "0"), failed);
        busyMs += clock.monotonic() - started;
        lives++;
      }
    }),
  );
  await provider.close();
  const { refused, unanswered } = failed;
  const rate = counts.reads / (busyMs / 1_000);
  process.stderr.write(
    `${nodes} at once: ${lives} lives, ${counts.reads} reads (${rate.toFixed(3)} per second and node), ` +
      `${counts.changes} changing calls (${(counts.changes / lives).toFixed(1)} per life), ` +
      `${refused} creates refused by a fault of the cloud, ${unanswered} without an answer\n`,
  );
  // A create without an answer has made a server or not, so that its removal is a call or none.
  const certain = lives * 2 + refused + unanswered;
  expect(counts.changes).toBeGreaterThanOrEqual(certain);
  expect(counts.changes).toBeLessThanOrEqual(certain + unanswered);
  expect(refused).toBeLessThanOrEqual(lives / 20);
  expect(rate).toBeLessThanOrEqual(most);
});

/**
 * Creates and removes one node. As the launcher does, it tries a create again after a fault of the cloud: nova answers 500
 * when a port of another server goes while it lists the ports, and a busy machine may not answer within the driver's limit.
 */
async function life(
  provider: Provider,
  config: ReturnType<typeof compile>,
  nodeId: string,
  failed: { refused: number; unanswered: number },
): Promise<void> {
  const [pool] = config.pools;
  const tag: Tag = { installation: "reads", provider: config.name, pool: "main", nodeId };
  const order = {
    tag,
    hostname: `np${nodeId}`,
    pool: pool!,
    label: pool!.labels.get("small")!,
    az: null,
    imageExternalId: null,
    request: {},
    attempt: 1,
  } as unknown as CreateOrder;
  let externalId: ExternalId | null = null;
  const options = () => ({
    clock,
    signal,
    externalId,
    save: async (id: ExternalId) => {
      externalId = id;
    },
  });
  const remove = () => runSteps((step) => provider.remove(tag, step), options());
  const created = async (): Promise<boolean> => {
    try {
      await runSteps((step) => provider.create(order, step), options());
      return true;
    } catch (error) {
      if (!(error instanceof DriverError && error.kind === "transient")) throw error;
      if (error.cause instanceof NoAnswer) {
        failed.unanswered++;
        await remove();
      } else if (/ 500: /.test(error.message)) failed.refused++;
      else throw error;
      return false;
    }
  };
  while (!(await created()));
  await remove();
}
