import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { ApiCall, PoolConfig, UploadOrder } from "@nodeyard/driver";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  compile,
  LxdServer,
  lxdImage,
  requireLxd,
  startStreams,
  Trust,
} from "../../../../testing/lxd/index.ts";
import { patient } from "../../../../testing/patience.ts";
import { contextOf, Launches, output, uploadOf } from "../../../../testing/qemu/index.ts";
import { lxdDriver } from "../src/index.ts";

const LIMIT_MS = patient(120_000);

const overTls = (server: LxdServer, { cert, key }: Trust) => ({
  ...{ server: server.address, "client-certificate": cert, "client-key": key },
  "server-certificate": join(server.folder, "lxd/server.crt"),
});

describe.skipIf(requireLxd() !== undefined)("what machines are made from", () => {
  let server: LxdServer;
  let remote: LxdServer;
  beforeAll(async () => {
    [server, remote] = await Promise.all([LxdServer.start(), LxdServer.start()]);
  }, LIMIT_MS);
  afterAll(async () => {
    await Promise.all([server?.stop(), remote?.stop()]);
  });

  /** A provider on the server's socket, with one label. */
  async function open(label: object, more: object = {}, on = server, about = {}): Promise<Launches> {
    const labels = [{ name: "l", cores: 1, ram: 64, ...label }];
    const config = compile({ server: on.socket, pools: [{ name: "main", labels }], ...more });
    const pool = config.pools[0] as PoolConfig;
    const provider = await lxdDriver.open(config, { ...contextOf(Launches.installation), ...about });
    return new Launches({ config, pool, label: pool.labels.get("l")! }, provider);
  }

  async function upload(
    { provider }: Launches,
    uploadId: string,
    image?: ReturnType<typeof uploadOf>,
  ): Promise<string> {
    image ??= uploadOf((await lxdImage()).rootfs, "tar");
    const tag = {
      installation: Launches.installation,
      provider: "big",
      image: "built",
      buildId: "b",
      uploadId,
    };
    const order: UploadOrder = { ...image, tag, name: "built-1", metadata: { os: "linux" }, progress() {} };
    const steps = provider.offers!.images!.upload(order, {
      signal: new AbortController().signal,
      externalId: null,
    });
    for (;;) {
      const next = await steps.next();
      if (next.done) return String(next.value);
    }
  }

  test("an image of the builder, whose machines answer SSH with host keys of their own", {
    timeout: LIMIT_MS,
  }, async () => {
    const launches = await open({ diskimage: "built" }, { diskimages: [{ name: "built" }] });
    const id = await upload(launches, "0000000001");
    const machines = await Promise.all(["0000000001", "0000000002"].map((node) => launches.create(node, id)));
    const keys = await Promise.all(machines.map((machine) => launches.hostKeys(machine)));
    expect(new Set(keys.flat()).size).toBe(2);
    const { signal } = new AbortController();
    const about = { signal, externalId: null };
    const text = await launches.provider.offers!.console!.read(launches.order("0000000001").tag, about);
    expect(text).toContain(`${machines[0]!.hostname} is up`);
    for (const node of ["0000000001", "0000000002"]) await launches.remove(node);
    await launches.provider.close();
  });

  test("a disk of the builder is an image for virtual machines", { timeout: LIMIT_MS }, async () => {
    const label = { diskimage: "built", type: "virtual-machine" };
    const launches = await open(label, { diskimages: [{ name: "built" }] });
    expect(launches.provider.offers!.images!.formats[0]).toBe("qcow2");
    const file = join(server.folder, "disk.qcow2");
    await output("qemu-img", ["create", "-f", "qcow2", file, "1M"]);
    const id = await upload(launches, "0000000002", uploadOf(file, "qcow2"));
    expect(await server.call("GET", `/1.0/images/${id}`)).toMatchObject({ type: "virtual-machine" });
    await launches.provider.close();
  });

  test.each([
    ["a server on this host", () => ({})],
    ["a server over TLS", async () => overTls(server, await Trust.make(server, "events"))],
  ])("%s tells when its operations have ended, and is not asked", { timeout: LIMIT_MS }, async (_, where) => {
    const images = { "cloud-images": [{ name: "tiny" }], ...(await where()) };
    const calls: string[] = [];
    const observe = ({ operation }: ApiCall) => void calls.push(operation);
    const launches = await open({ "cloud-image": "tiny" }, images, server, { observe });
    await launches.create("0000000008");
    await launches.remove("0000000008");
    const changes = calls.filter((call) => !call.endsWith("GET"));
    expect(changes).toEqual([
      "instances.POST",
      ...["instances.state.PUT", "instances.state.PUT", "instances.DELETE"],
    ]);
    expect(calls).not.toContain("operations.wait.GET");
    await launches.provider.close();
  });

  test("an image of another server, which is downloaded for the first machine", {
    timeout: LIMIT_MS,
  }, async () => {
    const there = await open({ diskimage: "built" }, { diskimages: [{ name: "built" }] }, remote);
    const id = await upload(there, "0000000009");
    await there.provider.close();
    await remote.call("PATCH", `/1.0/images/${id}`, { public: true });
    await remote.call("POST", "/1.0/images/aliases", { name: "public/tiny", target: id });
    const certificate = join(remote.folder, "lxd/server.crt");
    const [, address] = await server.linkTo(remote);
    const image = { image: "public/tiny", remote: address, "remote-protocol": "lxd" };
    const images = { "cloud-images": [{ name: "far", ...image, "remote-certificate": certificate }] };
    const launches = await open({ "cloud-image": "far" }, images);
    const machine = await launches.create("0000000003");
    expect(await launches.hostKeys(machine)).toHaveLength(1);
    expect(await server.call("GET", `/1.0/images/${id}`)).toMatchObject({ cached: true });
    await launches.remove("0000000003");
    await launches.provider.close();
  });

  test("an image of a server of images, by its alias", { timeout: LIMIT_MS }, async () => {
    const streams = await startStreams(server, "tiny/1/cloud");
    try {
      const image = { image: "tiny/1/cloud", remote: streams.url, "remote-certificate": streams.certificate };
      const launches = await open({ "cloud-image": "far" }, { "cloud-images": [{ name: "far", ...image }] });
      const machine = await launches.create("0000000010");
      expect(await launches.hostKeys(machine)).toHaveLength(1);
      expect(streams.asked).toContain("streams/v1/index.json");
      await launches.remove("0000000010");
      await launches.provider.close();
    } finally {
      await streams.close();
    }
  });

  test("a snapshot, with what was prepared in it", { timeout: LIMIT_MS }, async () => {
    await server.call("POST", "/1.0/instances", { name: "base", source: { type: "image", alias: "tiny" } });
    await server.call("POST", "/1.0/instances/base/files?path=/etc/prepared", Buffer.from("in advance"));
    await server.call("POST", "/1.0/instances/base/snapshots", { name: "ready" });
    const images = { "cloud-images": [{ name: "warm", "copy-of": "base/ready" }] };
    const launches = await open({ "cloud-image": "warm", config: { "user.role": "test" } }, images);
    const machine = await launches.create("0000000004");
    expect(await launches.hostKeys(machine)).toHaveLength(1);
    const file = join(server.folder, "lxd/containers", String(machine.externalId), "rootfs/etc/prepared");
    expect(readFileSync(`/proc/${server.inside}/root${file}`, "utf8")).toBe("in advance");
    const { config } = await server.call("GET", `/1.0/instances/${machine.externalId}`);
    expect(config).toMatchObject({
      "user.role": "test",
      "limits.memory": "64MiB",
      "user.nodepool_node_id": "0000000004",
    });
    await launches.remove("0000000004");
    await server.call("DELETE", "/1.0/instances/base");
    await launches.provider.close();
  });

  test.each<readonly [string, object, object]>([
    ["an alias of nothing", {}, { "cloud-images": [{ name: "tiny", image: "none" }] }],
    ["a profile of nothing", { profiles: ["none"] }, {}],
    ["a key that LXD lacks", { config: { "limits.wings": "2" } }, {}],
    ["a device that LXD lacks", { devices: { wings: { type: "wing" } } }, {}],
    ["virtual machines on a server that has none", { type: "virtual-machine" }, {}],
    ["a copy of nothing", {}, { "cloud-images": [{ name: "tiny", "copy-of": "none/ready" }] }],
  ])("%s is a fault of the configuration", { timeout: LIMIT_MS }, async (_what, label, more) => {
    const launches = await open(
      { "cloud-image": "tiny", ...label },
      { "cloud-images": [{ name: "tiny" }], ...more },
    );
    const failure = await launches.create("0000000005").catch((error) => error);
    expect(failure).toMatchObject({ code: "driver.configuration" });
    await launches.remove("0000000005");
    expect(await launches.provider.list(new AbortController().signal)).toEqual(
      expect.not.arrayContaining([expect.objectContaining({ type: "instance" })]),
    );
    await launches.provider.close();
  });

  test("a project's limits are the quota, and a project that is not there is no provider", async () => {
    const limits = {
      "limits.instances": "3",
      "limits.cpu": "5",
      "limits.memory": "1GiB",
      "limits.containers": "2",
    };
    await server.call("POST", "/1.0/projects", {
      name: "small",
      config: { "features.profiles": "false", ...limits },
    });
    const images = { "cloud-images": [{ name: "tiny" }] };
    const launches = await open({ "cloud-image": "tiny" }, { ...images, project: "small" });
    const quota = await launches.provider.quota(new AbortController().signal);
    expect(quota).toEqual({ instances: 3, cores: 5, ram: 1024, containers: 2 });
    await launches.provider.close();
    const none = open({ "cloud-image": "tiny" }, { ...images, project: "none" });
    await expect(none).rejects.toMatchObject({ kind: "configuration" });
  });

  test("a server that does not trust the client is the provider's fault", async () => {
    const [key, cert] = ["lxd/server.key", "lxd/server.crt"].map((name) => join(remote.folder, name));
    const files = {
      "client-certificate": cert,
      "client-key": key,
      "server-certificate": join(server.folder, "lxd/server.crt"),
    };
    const images = { "cloud-images": [{ name: "tiny" }], server: server.address };
    await expect(open({ "cloud-image": "tiny" }, { ...images, ...files })).rejects.toMatchObject({
      kind: "access",
    });
    const other = { ...files, "server-certificate": cert };
    await expect(open({ "cloud-image": "tiny" }, { ...images, ...other })).rejects.toThrow(/certificate/);
  });
});
