import { connect } from "@nodeyard/zookeeper";
import { afterAll, beforeAll, describe, test } from "vitest";
import {
  requireZooKeeper,
  startZooKeeper,
  type ZooKeeperServer,
} from "../../../../../testing/zookeeper/index.ts";
import { killedAt, POINTS, SCRIPT } from "./killed.ts";
import { ZooKeeperImageSite } from "./site.ts";

const SESSION_S = 4;
/** Together, since most of the time is spent on waiting for the session of who was killed. */
const AT_ONCE = 10;

describe.skipIf(requireZooKeeper())("a builder that is killed, on a real ZooKeeper", () => {
  let server: ZooKeeperServer;
  let tries = 0;
  beforeAll(async () => {
    server = await startZooKeeper();
  });
  afterAll(() => server.stop());

  const groups = Array.from({ length: POINTS / AT_ONCE }, (_, group) =>
    Array.from({ length: AT_ONCE }, (_, at) => group + (at * POINTS) / AT_ONCE),
  );
  test.each(groups.map((points) => [points.join(", "), points] as const))(
    "at points %s",
    async (_, points) => {
      await Promise.all(points.map(killed));
    },
  );

  async function killed(point: number): Promise<void> {
    // A second try begins in a tree of its own, too.
    const chroot = `/point-${point}-${tries++}`;
    const client = await connect(`${server.host}:${server.port}`);
    await client.create(chroot);
    await client.close();
    const place = `{host: ${server.host}, port: ${server.port}, chroot: ${chroot}}`;
    const site = new ZooKeeperImageSite(SCRIPT, place, SESSION_S);
    try {
      await killedAt(site, point);
    } finally {
      await site.close();
    }
  }
});
