import { createHash, randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Clock, type DriverContext, DriverError, type Purpose } from "@nodeyard/driver";
import {
  createOpenstackDriver,
  type OpenstackHost,
  type OpenstackProviderConfig,
  openstackConfig,
  thisHost,
} from "@nodeyard/driver-openstack";
import { Between, type ConformanceRig } from "@nodeyard/driver-testkit";
import { systemClock, systemRandom } from "@nodeyard/runtime";
import { CloudUser } from "./admin.ts";
import type { OpenstackSite } from "./site.ts";

interface Item {
  readonly id: string;
  readonly name: string;
}

interface Port extends Item {
  readonly device_owner: string;
}

const quiet = { debug() {}, info() {}, warn() {}, error() {} };

export function contextOf(installation: string, clock: Clock = systemClock): DriverContext {
  return {
    clock,
    random: systemRandom,
    log: quiet,
    scan: { scan: () => Promise.reject(new DriverError("timeout", "nothing scans here")) },
    installation,
  };
}

/** A provider of the file, compiled by the driver. */
export function compile(fields: object = {}, labelFields: object = {}): OpenstackProviderConfig {
  const label = {
    name: "small",
    "cloud-image": "fake",
    "flavor-name": "small",
    "key-name": "nodeyard",
    "instance-properties": { team: "qa" },
    "dynamic-instance-properties": { tenant: "Tenant is {request.tenant_name}" },
    ...labelFields,
  };
  const raw = {
    name: "openstack-provider",
    cloud: "nodeyard",
    "region-name": "RegionOne",
    "cloud-images": [{ name: "fake", "image-name": "nodeyard-fake", username: "zuul" }],
    pools: [{ name: "main", networks: ["nodeyard"], labels: [label] }],
    ...fields,
  };
  const report = ({ path, message }: { path: readonly unknown[]; message: string }) => {
    throw new Error(`${path.join(".")}: ${message}`);
  };
  const context = { labels: new Set([label.name]), diskimages: new Map(), report };
  return openstackConfig.load(raw, context)!;
}

export function hostOf(site: OpenstackSite): OpenstackHost {
  const env = { OS_CLIENT_CONFIG_FILE: site.cloudsYaml };
  return { ...thisHost, around: { ...thisHost.around, env } };
}

/** A test between the driver and the cloud. */
function betweenServices(): Between {
  return new Between({
    writes: ({ method, url }) => method !== "GET" && !url.endsWith("/auth/tokens"),
    makes: ({ method, url }) => method === "POST" && url.endsWith("/servers"),
    removes: ({ method, url }) => method === "DELETE" && /\/servers\/[^/]+$/.test(url),
    lists: ({ method, url }) => method === "GET" && /\/servers(\/detail)?(\?|$)/.test(url),
  });
}

/** The project "nodeyard" of a real cloud, emptied before and after. `elsewhere`: another project, where none of its servers is. */
export async function openstackRig(site: OpenstackSite, elsewhere: OpenstackSite): Promise<ConformanceRig> {
  const config = compile();
  const [pool] = config.pools;
  const between = betweenServices();
  const host = hostOf(site);
  const driver = createOpenstackDriver({
    ...host,
    connect(tls) {
      const { send, close } = host.connect(tls);
      return { send: (one) => between.send(one, () => send(one)), close };
    },
  });
  const [user, admin] = [new CloudUser(site, "nodeyard"), new CloudUser(site, "admin")];
  const quota = async (instances: number) =>
    admin.put("compute", `/os-quota-sets/${await user.project()}`, { quota_set: { instances, force: true } });
  const folder = mkdtempSync(join(tmpdir(), "nodeyard-openstack-image-"));
  const opened: { close(): Promise<void> }[] = [];
  site.faults({});
  await quota(20);
  await empty(user);
  const opens = async (by: typeof driver, installation: string, purpose?: Purpose) => {
    const context = { ...contextOf(installation, between.clock), ...(purpose && { purpose }) };
    const provider = await by.open(config, context);
    opened.push(provider);
    return provider;
  };
  return {
    ...between.faults(),
    clock: between.clock,
    providerName: config.name,
    suspends: true,
    pool: pool!,
    label: pool!.labels.get("small")!,
    open: (installation, purpose) => opens(driver, installation, purpose),
    openElsewhere: (installation) => opens(createOpenstackDriver(hostOf(elsewhere)), installation),
    loseTag: ({ id }) => user.put("compute", `/servers/${id}/metadata`, { metadata: {} }),
    drive: (work) => work,
    async settle() {
      // A leaked server is told to end, and nobody waits for it. Nova notes that before it answers.
      while (await isDeleting(user)) await new Promise((resolve) => setTimeout(resolve, 100));
    },
    fillQuota: () => quota(0),
    breakList: () =>
      site.faults({ api: [{ service: "nova", method: "GET", path: "/servers/detail$", status: 500 }] }),
    async makeForeign() {
      const { images } = await user.get<{ images: readonly Item[] }>("image", "/images?name=nodeyard-fake");
      const { flavors } = await user.get<{ flavors: readonly Item[] }>("compute", "/flavors");
      const flavorRef = flavors.find(({ name }) => name === "small")!.id;
      const server = { name: "theirs", flavorRef, imageRef: images[0]!.id, networks: "none" };
      await user.post("compute", "/servers", { server });
    },
    image: async () => imageFile(folder),
    async stop() {
      rmSync(folder, { recursive: true, force: true });
      site.faults({});
      for (const provider of opened) await provider.close();
      await quota(20);
      await empty(user);
      await user.close();
      await admin.close();
    },
  };
}

/** An image with unique content. */
export function imageFile(folder: string) {
  const bytes = randomBytes(5_000_000);
  const file = join(folder, `${bytes.toString("hex", 0, 8)}.qcow2`);
  writeFileSync(file, bytes);
  const digest = (kind: string) => createHash(kind).update(bytes).digest("hex");
  return {
    file,
    format: "qcow2",
    size: bytes.length,
    sha256: digest("sha256"),
    md5: digest("md5"),
    own: null,
  };
}

/** Whether nova is about to end a server of the project. */
async function isDeleting(user: CloudUser): Promise<boolean> {
  const { servers } = await user.get<{ servers: readonly Readonly<Record<string, unknown>>[] }>(
    "compute",
    "/servers/detail",
  );
  return servers.some((server) => server["OS-EXT-STS:task_state"] === "deleting");
}

/** Deletes all of the project: servers, floating IPs, volumes, images, and ports that belong to nothing; waits until the servers are gone. */
export async function empty(user: CloudUser): Promise<void> {
  const project = await user.project();
  for (;;) {
    const { servers } = await user.get<{ servers: readonly Item[] }>("compute", "/servers/detail");
    if (servers.length === 0) break;
    for (const { id } of servers) await user.delete("compute", `/servers/${id}`);
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
  const own = `project_id=${project}`;
  for (const { id } of await user.all<Item>("network", `/floatingips?${own}`, "floatingips"))
    await user.delete("network", `/floatingips/${id}`);
  for (const { id, device_owner: owner } of await user.all<Port>("network", `/ports?${own}`, "ports"))
    if (!owner.startsWith("network:")) await user.delete("network", `/ports/${id}`);
  for (const { id } of await user.all<Item>("block-storage", "/volumes", "volumes"))
    await user.delete("block-storage", `/volumes/${id}`);
  for (const { id } of await user.all<Item>("image", `/images?owner=${project}`, "images"))
    await user.delete("image", `/images/${id}`);
}
