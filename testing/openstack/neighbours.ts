import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";
import type { CloudUser } from "./admin.ts";

interface Item {
  readonly id: string;
  readonly name?: string;
}

interface State {
  readonly status: string;
}

/**
 * What others have in the project, with names and texts like ours: another installation's server, and floating IPs, a port
 * and a volume that look like a node's. Returns the ids of all there is.
 */
export async function lookAlikes(user: CloudUser): Promise<ReadonlySet<string>> {
  const find = async (name: string) =>
    (await user.get<{ networks: readonly Item[] }>("network", `/networks?name=${name}`)).networks[0]!.id;
  const [outer, inner] = await Promise.all([find("public"), find("nodeyard")]);
  for (const description of ["np0000000000", "nodeyard/other-installation/cloud/main/0000000000"])
    await user.post("network", "/floatingips", { floatingip: { floating_network_id: outer, description } });
  await user.post("network", "/ports", { port: { network_id: inner, name: "np0000000000" } });
  await user.post("block-storage", "/volumes", { volume: { size: 1, name: "np0000000000" } });
  const { images } = await user.get<{ images: readonly Item[] }>("image", "/images?name=nodeyard-fake");
  const { flavors } = await user.get<{ flavors: readonly Item[] }>("compute", "/flavors");
  const metadata = {
    nodepool_node_id: "0000000000",
    nodepool_pool_name: "main",
    nodepool_provider_name: "cloud",
    nodeyard_installation: "other-installation",
  };
  await user.post("compute", "/servers", {
    server: {
      name: "np0000000000",
      flavorRef: flavors.find(({ name }) => name === "small")!.id,
      imageRef: images[0]!.id,
      networks: [{ uuid: inner }],
      metadata,
    },
  });
  await until("the neighbours are up", async () => {
    const [{ servers }, { volumes }] = await Promise.all([
      user.get<{ servers: readonly State[] }>("compute", "/servers/detail"),
      user.get<{ volumes: readonly State[] }>("block-storage", "/volumes/detail"),
    ]);
    return servers.every(({ status }) => status === "ACTIVE") && volumes[0]?.status === "available";
  });
  return things(user);
}

/** Waits until the project holds what is expected and nothing else; fails with the difference. */
export async function untilOnly(
  user: CloudUser,
  expected: ReadonlySet<string>,
  limitMs: number,
): Promise<void> {
  let difference: readonly string[] = [];
  await until(
    "the project holds what it held before",
    async () => {
      const now = await things(user);
      difference = [
        ...[...now].filter((id) => !expected.has(id)),
        ...[...expected].filter((id) => !now.has(id)).map((id) => `${id} is missing`),
      ];
      return difference.length === 0;
    },
    limitMs,
  ).catch((error) => {
    expect(difference, String(error)).toEqual([]);
  });
}

/** Ids of servers, floating IPs, ports, volumes, and images that are no public ones. */
export async function things(user: CloudUser): Promise<ReadonlySet<string>> {
  const [{ servers }, { floatingips }, { ports }, { volumes }, { images }] = await Promise.all([
    user.get<{ servers: readonly Item[] }>("compute", "/servers"),
    user.get<{ floatingips: readonly Item[] }>("network", "/floatingips"),
    user.get<{ ports: readonly Item[] }>("network", "/ports"),
    user.get<{ volumes: readonly Item[] }>("block-storage", "/volumes"),
    user.get<{ images: readonly Item[] }>("image", "/images?visibility=private"),
  ]);
  return new Set([...servers, ...floatingips, ...ports, ...volumes, ...images].map(({ id }) => id));
}

async function until(what: string, look: () => Promise<boolean>, limitMs = 60_000): Promise<void> {
  const limit = performance.now() + limitMs;
  while (!(await look().catch(() => false))) {
    if (performance.now() > limit) throw new Error(`not within ${limitMs} ms: ${what}`);
    await sleep(1_000);
  }
}
