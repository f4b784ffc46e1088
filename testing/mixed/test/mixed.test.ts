import { seededRandom } from "@nodeyard/runtime";
import type { Tree } from "@nodeyard/tree";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Load } from "../../chaos/load.ts";
import { until } from "../../chaos/patience.ts";
import { onZooKeeper, type ZooKeeperSite } from "../../chaos/site.ts";
import { checkCloud, checkLog, childrenOf, excerpt, ledgerSums, leftovers } from "../../chaos/verdict.ts";
import type { Victim } from "../../chaos/victim.ts";
import { requireZooKeeper, startZooKeeper } from "../../zookeeper/index.ts";
import { checkOut, type Revision, requireHistory } from "../revision.ts";

/** The commit whose launcher runs beside today's. */
const REV = process.env.NODEYARD_MIXED_REV ?? "HEAD~1";
/** Time in which the session of a killed launcher expires, on a machine that may stall for seconds. */
const SERVED_MS = 90_000;

describe.skipIf(requireZooKeeper() ?? requireHistory(REV))(`the launcher of ${REV} beside today's`, () => {
  let old: Revision;
  let site: ZooKeeperSite;
  let tree: Tree;
  const victims: Victim[] = [];

  beforeAll(async () => {
    old = checkOut(REV);
    site = onZooKeeper(await startZooKeeper());
  });
  afterAll(async () => {
    await Promise.all(victims.map((victim) => victim.signal("SIGKILL")));
    await tree?.close();
    await site?.close();
    old?.remove();
  });

  async function start(which: "old" | "new"): Promise<Victim> {
    const victim = which === "old" ? site.startOther(old.bin) : site.start();
    victims.push(victim);
    expect(await victim.printed(site.ready), victim.errors).toBe(true);
    return victim;
  }

  /** Sessions that fulfilled a request after this length of the log. */
  function servers(from: number): Set<string> {
    const fulfils = site
      .log()
      .slice(from)
      .filter(({ ops }) =>
        ops.some(
          (op) =>
            op.op === "set" &&
            op.path.startsWith("/nodepool/requests/") &&
            Buffer.from(op.data).includes('"fulfilled"'),
        ),
      );
    return new Set(fulfils.map(({ client }) => client));
  }

  const served = (load: Load, by: number, from: number) =>
    until(
      () => load.complaints.length > 0 || servers(from).size >= by,
      SERVED_MS,
      () => `only ${[...servers(from)]} served\n${excerpt(site.log(), undefined).join("\n")}`,
    );
  /** Requests that begin now must end although one launcher was killed. */
  async function continues(load: Load): Promise<void> {
    const had = load.zuul.ended.length;
    await until(
      () => load.complaints.length > 0 || load.zuul.ended.length >= had + 15,
      SERVED_MS,
      () => `${load.zuul.ended.length - had} of 15 requests ended after the kill`,
    );
  }

  test("both serve one tree; each takes over when the other is killed; nothing is lost", async () => {
    expect(old.missing, `${old.commit} needs packages that are not installed`).toEqual([]);
    let [before, today] = await Promise.all([start("old"), start("new")]);
    tree = await site.connect();
    expect(await childrenOf(tree, "/nodepool/components/pool")).toHaveLength(2);
    const load = new Load(tree, seededRandom(3));
    await served(load, 2, 0);
    await before.signal("SIGKILL");
    await continues(load);
    before = await start("old");
    await served(load, 2, site.log().length);
    await today.signal("SIGKILL");
    await continues(load);
    today = await start("new");
    await load.stop();
    expect(load.complaints).toEqual([]);
    await until(
      async () => (await leftovers(tree)).length === 0,
      SERVED_MS,
      async () => (await leftovers(tree)).join(", "),
    );
    const check = checkLog(site.log());
    expect([check.nodes.size, check.requests.size]).toEqual([0, 0]);
    expect([...checkCloud(site.cloud)]).toEqual([]);
    expect(await ledgerSums(tree)).toEqual([]);
    expect([before.dead, today.dead]).toEqual([false, false]);
  });
});
