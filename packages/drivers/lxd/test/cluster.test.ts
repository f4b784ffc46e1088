import { type ApiCall, type PoolConfig, runSteps } from "@nodeyard/driver";
import { systemClock } from "@nodeyard/runtime";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { compile, LxdServer, requireLxd } from "../../../../testing/lxd/index.ts";
import { patient } from "../../../../testing/patience.ts";
import { contextOf, Launches } from "../../../../testing/qemu/index.ts";
import { lxdDriver } from "../src/index.ts";

const LIMIT_MS = patient(180_000);
const { signal } = new AbortController();
/** LXD's least, seconds. */
const OFFLINE_S = 11;

describe.skipIf(requireLxd() !== undefined)("a cluster of three", () => {
  let servers: readonly LxdServer[];
  beforeAll(async () => {
    const bare = { bare: true };
    servers = await Promise.all([LxdServer.start(), LxdServer.start(bare), LxdServer.start(bare)]);
  }, LIMIT_MS);
  afterAll(() => Promise.all((servers ?? []).map((one) => one.stop())));

  async function open(observe: (call: ApiCall) => void = () => {}): Promise<Launches> {
    const labels = [{ name: "l", cores: 1, ram: 64, "cloud-image": "tiny" }];
    const pools = [{ name: "main", labels }];
    const config = compile({ server: servers[0]!.socket, pools, "cloud-images": [{ name: "tiny" }] });
    const pool = config.pools[0] as PoolConfig;
    const provider = await lxdDriver.open(config, { ...contextOf(Launches.installation), observe });
    return new Launches({ config, pool, label: pool.labels.get("l")! }, provider);
  }

  test("has a zone for each member, and its machines are there while a member is away", {
    timeout: LIMIT_MS,
  }, async () => {
    const before = await open();
    const [first, second, third] = servers as [LxdServer, LxdServer, LxdServer];
    const alone = await before.provider.quota(signal);
    await first.cluster(second, third);
    await first.call("PATCH", "/1.0", { config: { "cluster.offline_threshold": String(OFFLINE_S) } });
    // A cluster has a new certificate.
    const calls: string[] = [];
    const launches = await open(({ operation }) => void calls.push(operation));
    const { provider } = launches;
    const here = provider.place!();
    expect(before.provider.place!()).not.toEqual(here);
    await before.provider.list(signal);
    expect(before.provider.place!()).toEqual(here);
    await before.provider.close();

    const { pool } = launches.order("0000000000");
    const zones = () => provider.offers!.zones!.list(pool, signal);
    expect(await zones()).toEqual(["member0", "member1", "member2"]);
    expect((await provider.quota(signal)).cores).toBe(3 * alone.cores!);
    const orderIn = (az: string, nodeId: string) => ({ ...launches.order(nodeId), az });
    const create = (az: string, nodeId: string) =>
      launches.run((context) => provider.create(orderIn(az, nodeId), context));
    for (const at of [1, 2])
      expect(await create(`member${at}`, `000000000${at}`)).toMatchObject({
        ...{ az: `member${at}`, hostId: `member${at}` },
      });
    // Members tell each other.
    expect(calls).not.toContain("operations.wait.GET");
    await expect(create("elsewhere", "0000000003")).rejects.toMatchObject({ kind: "unsupported" });

    await second.stop();
    await expect.poll(zones, { timeout: LIMIT_MS }).toEqual(["member0", "member2"]);
    // What runs there cannot be asked, so nobody gets it; it is not gone, and counts.
    const { tag } = launches.order("0000000001");
    const id = await provider.find(tag, signal, (await instances())[0]!);
    const [away, there] = (await provider.list(signal)).filter(({ type }) => type === "instance");
    expect([away, there]).toMatchObject([
      { id, ended: true, resources: { instances: 1 } },
      { tag: { nodeId: "0000000002" } },
    ]);
    await expect(create("member1", "0000000004")).rejects.toMatchObject({ kind: "capacity" });
    expect(await create("member0", "0000000005")).toMatchObject({ az: "member0" });
    const remove = () =>
      runSteps((context) => provider.remove(tag, context), {
        ...{ clock: systemClock, signal, externalId: id!, save: async () => {} },
      });
    await expect(remove()).rejects.toThrow(/member/);
    // Somebody gives it up.
    await first.call("DELETE", "/1.0/cluster/members/member1?force=1");
    await remove();
    for (const node of ["0000000002", "0000000005"]) await launches.remove(node);
    expect(await instances()).toEqual([]);
    await provider.close();
  });

  const instances = async () => {
    const all = (await servers[0]!.call("GET", "/1.0/instances?recursion=1")) as unknown;
    return (all as readonly { readonly name: string }[]).map(({ name }) => name).sort();
  };
});
