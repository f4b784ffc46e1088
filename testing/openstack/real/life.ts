import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ImageTag, type Provider, runSteps } from "@nodeyard/driver";
import { createOpenstackDriver } from "@nodeyard/driver-openstack";
import { systemClock as clock } from "@nodeyard/runtime";
import { afterAll, beforeAll, expect, test } from "vitest";
import { CloudUser } from "../admin.ts";
import { openstackCli } from "../cli.ts";
import { LauncherSite } from "../launcher-site.ts";
import { lookAlikes, untilOnly } from "../neighbours.ts";
import { compile, contextOf, empty, hostOf, imageFile } from "../rig.ts";
import { OpenstackSite } from "../site.ts";

const JOB_MS = 240_000;
const GONE_MS = 180_000;
const { signal } = new AbortController();
const options = { clock, signal, externalId: null, save: async () => {} };

let site: OpenstackSite;
let user: CloudUser;
let launcher: LauncherSite;
let provider: Provider;
let neighbours: ReadonlySet<string>;
let tag: ImageTag;
let folder: string;

interface Booted {
  readonly servers: readonly {
    readonly id: string;
    readonly image: { readonly id: string } | "";
    readonly name: string;
  }[];
}

beforeAll(async () => {
  site = OpenstackSite.start("life");
  user = new CloudUser(site, "nodeyard");
  const admin = new CloudUser(site, "admin");
  await empty(user);
  const path = `/os-quota-sets/${await user.project()}`;
  await admin.put("compute", path, { quota_set: { instances: 20, force: true } });
  neighbours = await lookAlikes({ user, installation: "other-installation" });
  launcher = await LauncherSite.start(site, (port) => configuration(port, 2));
  const { id: installation } = (await launcher.zuul.record("/nodeyard/installation")) as { id: string };
  tag = { installation, provider: "cloud", image: "noble", buildId: "1", uploadId: "0000000001" };
  provider = await createOpenstackDriver(hostOf(site)).open(
    compile({ name: "cloud" }),
    contextOf(installation),
  );
  folder = mkdtempSync(join(tmpdir(), "nodeyard-openstack-image-"));
});

afterAll(async () => {
  await launcher?.stop();
  await provider?.close();
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
  await empty(user);
});

test("an image goes up, and nodes that are kept ready boot from it; a job gets one of them at once; OpenStack's own client shows them so", async () => {
  const uploaded = imageFile(folder);
  const image = await runSteps(
    (step) =>
      provider.offers!.images!.upload(
        { ...uploaded, tag, name: "noble-1", metadata: { team: "qa" }, progress: () => {} },
        step,
      ),
    options,
  );
  const base = "/nodepool/images/noble/builds/1";
  const now = Date.now() / 1_000;
  const known = { username: "zuul", python_path: "auto", shell_type: null, state: "ready", state_time: now };
  await launcher.zuul.create(base, { ...known, builder: "b", builder_id: "b", formats: "qcow2" });
  await launcher.zuul.create(`${base}/providers/cloud/images/0000000001`, {
    ...known,
    external_id: image,
    external_name: "noble-1",
    format: "qcow2",
  });
  await expect.poll(() => readyOf("warm"), { timeout: JOB_MS, interval: 1_000 }).toBe(2);
  const { servers } = await user.get<Booted>("compute", "/servers/detail");
  const booted = servers.filter(({ image: of }) => of !== "" && of.id === image);
  expect(booted).toHaveLength(2);
  const { installation } = tag;
  expect(await openstackCli(site, "server", "show", booted[0]!.id)).toMatchObject({
    status: "ACTIVE",
    name: booted[0]!.name,
    key_name: "nodeyard",
    properties: {
      groups: "cloud,noble,warm",
      nodepool_node_id: booted[0]!.name.replace(/^np/, ""),
      nodepool_pool_name: "main",
      nodepool_provider_name: "cloud",
      nodeyard_installation: installation,
    },
  });
  expect(await openstackCli(site, "image", "show", String(image))).toMatchObject({
    name: "noble-1",
    status: "active",
    visibility: "private",
    disk_format: "qcow2",
    checksum: uploaded.md5,
    properties: { team: "qa", nodepool_upload_id: tag.uploadId, nodeyard_installation: installation },
  });
  const [job] = await launcher.zuul.jobs([["warm"]], JOB_MS);
  expect(job).toMatchObject({
    state: "used",
    nodes: [{ host_keys: launcher.guest.hostKeys, image_id: `${base}/providers/cloud/images/0000000001` }],
  });
  // What was used is made again.
  await expect.poll(() => readyOf("warm"), { timeout: JOB_MS, interval: 1_000 }).toBe(2);
});

test("nodes with floating IPs are scanned and handed out by them, and the IPs go with the nodes", async () => {
  const jobs = await launcher.zuul.jobs([["public"], ["public", "public"]], JOB_MS);
  expect(jobs.map(({ state }) => state)).toEqual(["used", "used"]);
  for (const { public_ipv4, interface_ip, private_ipv4, host_keys } of jobs.flatMap(({ nodes }) => nodes)) {
    expect(public_ipv4).toMatch(/^198\.51\.100\./);
    expect(interface_ip).toBe(public_ipv4);
    expect(private_ipv4).toMatch(/^10\.20\./);
    expect(host_keys).toEqual(launcher.guest.hostKeys);
  }
});

test("a node boots from a volume, takes of that quota, too, and the volume goes with it", async () => {
  const [job] = await launcher.zuul.jobs([["volumed"]], JOB_MS);
  expect(job).toMatchObject({
    state: "used",
    nodes: [{ resources: { instances: 1, volumes: 1, "volume-gb": 3, ports: 1 } }],
  });
});

test("a guest that never answers is tried as often as configured, its request fails, and explain says why", async () => {
  const [job] = await launcher.zuul.jobs([["silent"]], JOB_MS);
  expect(job).toMatchObject({ state: "failed", nodes: [] });
  const reported = await launcher.explain(job!.request);
  expect(reported).toMatch(/10\.21\.0\.\d+/);
  expect(launcher.log).toMatch(/"attempt":2,"of":2/);
});

test("when all is used and nothing is to be kept ready, nothing of ours is left", async () => {
  await launcher.reconfigure((port) => configuration(port, 0));
  // Apart: together they would have to be of one zone, and the two that are ready may not be.
  const jobs = await launcher.zuul.jobs([["warm"], ["warm"]], JOB_MS);
  expect(jobs).toMatchObject([{ state: "used" }, { state: "used" }]);
  await runSteps((step) => provider.offers!.images!.remove(tag, step), options);
  await untilOnly(user, neighbours, GONE_MS);
});

async function readyOf(label: string): Promise<number> {
  const ids = await launcher.zuul.children("/nodepool/nodes");
  const records = await Promise.all(
    ids.map((id) => launcher.zuul.record(`/nodepool/nodes/${id}`).catch(() => undefined)),
  );
  return records.filter((one) => one?.state === "ready" && (one.type as string[]).includes(label)).length;
}

const configuration = (guestPort: number, minReady: number) => `
labels:
  - {name: warm, min-ready: ${minReady}}
  - {name: public}
  - {name: volumed}
  - {name: silent}
diskimages:
  - {name: noble, formats: [qcow2], username: zuul}
providers:
  - name: cloud
    driver: openstack
    cloud: nodeyard
    boot-timeout: 10
    launch-timeout: 300
    launch-retries: 2
    diskimages:
      - {name: noble, connection-port: ${guestPort}}
    cloud-images:
      - {name: fake, image-name: nodeyard-fake, username: zuul, connection-port: ${guestPort}}
    pools:
      - name: main
        networks: [nodeyard]
        auto-floating-ip: false
        labels:
          - {name: warm, diskimage: noble, flavor-name: small, key-name: nodeyard}
          - {name: volumed, cloud-image: fake, flavor-name: small, boot-from-volume: true, volume-size: 3}
          - {name: silent, cloud-image: fake, flavor-name: small, networks: [nowhere], console-log: true}
      - name: outside
        networks: [nodeyard]
        labels:
          - {name: public, cloud-image: fake, min-ram: 1024, flavor-name: small, key-name: nodeyard}
`;
