import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";
import { patient } from "../patience.ts";
import type { CloudUser } from "./admin.ts";

interface Item {
  readonly id: string;
  readonly name?: string;
}

interface State {
  readonly status: string;
}

/** An owner whose resources look like ours. */
export interface Neighbour {
  readonly user: CloudUser;
  /** In the same project, another installation's id; in another project, even ours. */
  readonly installation: string;
}

/**
 * Makes resources of others with names and texts like ours: servers, floating IPs, ports, volumes and images that look like those of a
 * deleted node, of a Python launcher, and of nobody. Returns all resources that the project has then.
 */
export async function lookAlikes({ user, installation }: Neighbour): Promise<ReadonlySet<string>> {
  const [network, volume, image, server] = [
    await networkOf(user),
    async (name: string) => user.post("block-storage", "/volumes", { volume: { size: 1, name } }),
    async (fields: object) =>
      user.post("image", "/images", { name: NAME, disk_format: "raw", container_format: "bare", ...fields }),
    await serverOf(user),
  ];
  for (const description of ["", NAME, `nodeyard/${installation}/cloud/main/${GONE}`])
    await user.post("network", "/floatingips", {
      floatingip: { floating_network_id: network.outer, description },
    });
  // The second looks like one that a server left behind.
  for (const more of [{}, { device_id: randomUUID(), device_owner: "compute:nova" }])
    await user.post("network", "/ports", { port: { network_id: network.inner, name: NAME, ...more } });
  for (const name of [NAME, ""]) await volume(name);
  const upload = { nodepool_provider_name: "cloud", nodepool_build_id: "1", nodepool_upload_id: GONE };
  await image(upload);
  await image({ ...upload, nodeyard_image: "noble", nodeyard_installation: installation });
  const python = {
    nodepool_node_id: GONE,
    nodepool_pool_name: "main",
    nodepool_provider_name: "cloud",
  };
  await server(python);
  await server({ ...python, nodeyard_installation: installation });
  await until("the neighbours are up", async () => {
    const [{ servers }, { volumes }] = await Promise.all([
      user.get<{ servers: readonly State[] }>("compute", "/servers/detail"),
      user.get<{ volumes: readonly State[] }>("block-storage", "/volumes/detail"),
    ]);
    const [up, there] = [servers, volumes].map((all) => all.map(({ status }) => status));
    return [...up!, ...there!].sort().join() === "ACTIVE,ACTIVE,available,available";
  });
  return things(user);
}

const GONE = "0000000000";
const NAME = `np${GONE}`;

async function networkOf(user: CloudUser): Promise<{ readonly outer: string; readonly inner: string }> {
  const project = await user.project();
  const find = async (query: string) =>
    (await user.get<{ networks: readonly Item[] }>("network", `/networks?${query}`)).networks[0]!.id;
  const [outer, inner] = await Promise.all([
    find("name=public"),
    find(`name=nodeyard&project_id=${project}`),
  ]);
  return { outer, inner };
}

async function serverOf(user: CloudUser): Promise<(metadata: object) => Promise<void>> {
  const { images } = await user.get<{ images: readonly Item[] }>("image", "/images?name=nodeyard-fake");
  const { flavors } = await user.get<{ flavors: readonly Item[] }>("compute", "/flavors");
  const { inner } = await networkOf(user);
  return (metadata) =>
    user.post("compute", "/servers", {
      server: {
        name: NAME,
        flavorRef: flavors.find(({ name }) => name === "small")!.id,
        imageRef: images[0]!.id,
        networks: [{ uuid: inner }],
        metadata,
      },
    });
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
    throw error;
  });
}

/** The project's servers, floating IPs, ports, volumes and images, each as "kind id". */
export async function things(user: CloudUser): Promise<ReadonlySet<string>> {
  const project = await user.project();
  const lists = [
    ["compute", "/servers", "servers"],
    ["network", `/floatingips?project_id=${project}`, "floatingips"],
    ["network", `/ports?project_id=${project}`, "ports"],
    ["block-storage", "/volumes", "volumes"],
    ["image", `/images?owner=${project}`, "images"],
  ] as const;
  const all = await Promise.all(
    lists.map(async ([service, path, kind]) =>
      (await user.all<Item>(service, path, kind)).map(({ id, name }) => `${kind} ${id} ${name ?? ""}`.trim()),
    ),
  );
  return new Set(all.flat());
}

async function until(what: string, look: () => Promise<boolean>, limitMs = 60_000): Promise<void> {
  const limit = performance.now() + patient(limitMs);
  while (!(await look().catch(() => false))) {
    if (performance.now() > limit) throw new Error(`not within ${patient(limitMs)} ms: ${what}`);
    await sleep(1_000);
  }
}
