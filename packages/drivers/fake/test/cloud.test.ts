import { appendFileSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { seededRandom, VirtualClock } from "@nodeyard/runtime";
import { describe, expect, test } from "vitest";
import {
  Clouds,
  FakeCloud,
  type FakeKnobs,
  FileJournal,
  fakeDriver,
  INSTANT,
  type NewServer,
  readJournal,
} from "../src/index.ts";
import { contextFor, drive, fakeRig, label, pool, providerConfig } from "./rig.ts";

const signal = new AbortController().signal;

function order(nodeId: string, more: Partial<NewServer> = {}): NewServer {
  const tag = { installation: "i", provider: "p", pool: "main", nodeId };
  const resources = { instances: 1, cores: 4, ram: 8192 };
  return { name: nodeId, tag, az: null, resources, networks: [], imageProperties: {}, ...more };
}

function cloudOf(knobs: Partial<FakeKnobs> = {}, clock = new VirtualClock()) {
  return { clock, cloud: new FakeCloud({ clock, random: seededRandom(5), knobs: { ...INSTANT, ...knobs } }) };
}

describe("limits and scripted faults", () => {
  test("quota, zones and their room answer as a cloud does", async () => {
    const { cloud } = cloudOf({ quota: { instances: 2 }, capacity: { az1: 1 } });
    expect((await cloud.create(order("1", { az: "az1" }), signal)).az).toBe("az1");
    await expect(cloud.create(order("2", { az: "az1" }), signal)).rejects.toMatchObject({ status: 503 });
    await expect(cloud.create(order("2", { az: "az9" }), signal)).rejects.toMatchObject({ status: 400 });
    expect((await cloud.create(order("2"), signal)).az).toBe("az2");
    await expect(cloud.create(order("3"), signal)).rejects.toMatchObject({ status: 403 });
    expect(await cloud.create(order("2"), signal)).toMatchObject({ name: "2" });
    expect(cloud.inspect()).toHaveLength(2);
  });

  test("each scripted fault strikes as often as it was set", async () => {
    const { cloud } = cloudOf();
    cloud.faults.createFails = 1;
    cloud.faults.createFailsWithExternalId = 1;
    await expect(cloud.create(order("1"), signal)).rejects.toMatchObject({ status: 500 });
    expect(cloud.inspect()).toEqual([]);
    await expect(cloud.create(order("1"), signal)).rejects.toMatchObject({ status: 500 });
    const [made] = cloud.inspect();
    expect(await cloud.create(order("1"), signal)).toBe(made);
    cloud.faults.deleteFails = 1;
    cloud.faults.deleteLeavesRecord = 1;
    await expect(cloud.delete(made!.id, signal)).rejects.toMatchObject({ status: 500 });
    await cloud.delete(made!.id, signal);
    expect((await cloud.listAll(signal)).servers.map((server) => cloud.status(server))).toEqual(["DELETED"]);
    await expect(
      cloud.create(order("2", { imageProperties: { SHOULD_FAIL: "true" } }), signal),
    ).rejects.toThrow("SHOULD_FAIL");
  });

  test("a machine may never be up, or end in ERROR", async () => {
    const { cloud, clock } = cloudOf();
    cloud.faults.neverActive = 1;
    cloud.faults.endsInError = 1;
    const never = await cloud.create(order("1"), signal);
    const error = await cloud.create(order("2"), signal);
    await clock.advance(3_600_000);
    expect([cloud.status(never), cloud.status(error)]).toEqual(["BUILD", "ERROR"]);
  });
});

test("a cloud without idempotency tokens makes a second machine for a tag; each is found until it is deleted", async () => {
  const { cloud } = cloudOf({ repeatsCreates: true });
  const first = await cloud.create(order("1"), signal);
  const second = await cloud.create(order("1"), signal);
  expect(cloud.inspect()).toEqual([first, second]);
  expect(await cloud.findByTag(first.tag!, signal)).toBe(first);
  await cloud.delete(first.id, signal);
  expect(await cloud.findByTag(first.tag!, signal)).toBe(second);
  await cloud.delete(second.id, signal);
  expect(await cloud.findByTag(first.tag!, signal)).toBeUndefined();
});

describe("time", () => {
  test("the instant profile sets no timer", async () => {
    const { cloud, clock } = cloudOf();
    const server = await cloud.create(order("1"), signal);
    expect(cloud.status(server)).toBe("ACTIVE");
    await cloud.listAll(signal);
    await cloud.delete(server.id, signal);
    expect(clock.pending).toBe(0);
  });

  test("a request that was sent takes effect although its caller has gone", async () => {
    const latency = { ...INSTANT.latency, create: { minMs: 1_000, maxMs: 1_000 } };
    const { cloud, clock } = cloudOf({ latency });
    const controller = new AbortController();
    const made = cloud.create(order("1"), controller.signal);
    controller.abort(new Error("gone"));
    await expect(made).rejects.toThrow("gone");
    expect(cloud.inspect()).toEqual([]);
    await clock.advance(1_000);
    expect(cloud.inspect()).toHaveLength(1);
  });

  test("list and find lag, a read by id does not", async () => {
    const { cloud, clock } = cloudOf({ consistencyDelayMs: 10_000, seed: 8 });
    const server = await cloud.create(order("1"), signal);
    expect((await cloud.listAll(signal)).servers).toEqual([]);
    expect(await cloud.get(server.id, signal)).toBe(server);
    await clock.advance(10_000);
    expect(await cloud.findByTag(server.tag!, signal)).toBe(server);
    await cloud.delete(server.id, signal);
    expect((await cloud.listAll(signal)).servers).toEqual([server]);
    await clock.advance(10_000);
    expect((await cloud.listAll(signal)).servers).toEqual([]);
  });

  test("one seed makes one history", async () => {
    const history = async () => {
      const knobs = {
        ...INSTANT,
        seed: 42,
        latency: { ...INSTANT.latency, create: { minMs: 1, maxMs: 900 }, boot: { minMs: 1, maxMs: 9_000 } },
        errors: { create: 0.5, delete: 0, find: 0, list: 0 },
      };
      const { cloud, clock } = cloudOf(knobs);
      for (let node = 0; node < 20; node++) {
        await drive(clock, cloud.create(order(String(node)), signal)).catch(() => {});
      }
      return cloud.inspect();
    };
    const first = await history();
    expect(first.length).toBeGreaterThan(3);
    expect(await history()).toEqual(first);
  });
});

describe("a journal", () => {
  test("shows two processes one cloud, outlives both, and skips a line that was cut off", async () => {
    const folder = await mkdtemp(join(tmpdir(), "nodeyard-fake-"));
    const path = join(folder, "cloud.jsonl");
    try {
      const clock = new VirtualClock();
      const open = (seed: number) => {
        const journal = new FileJournal(path);
        return { journal, cloud: new FakeCloud({ clock, random: seededRandom(seed), journal }) };
      };
      const [one, two] = [open(1), open(2)];
      const first = await one.cloud.create(order("1"), signal);
      expect(await two.cloud.create(order("1"), signal)).toEqual(first);
      appendFileSync(path, '{"op":"create","ser');
      const second = await two.cloud.create(order("2"), signal);
      await one.cloud.delete(first.id, signal);
      const three = open(3);
      expect(three.cloud.inspect()).toEqual([second]);
      expect(two.cloud.inspect()).toEqual([second]);
      const events = readJournal(await readFile(path, "utf8"));
      expect(events.map(({ op }) => op)).toEqual(["create", "create", "delete"]);
      for (const { journal } of [one, two, three]) journal.close();
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });
});

describe("clouds of one process", () => {
  test("two providers of one cloud share it, another clock or name has its own; new knobs apply to all", async () => {
    const base = providerConfig(INSTANT);
    const named = (cloud: string, knobs = INSTANT) => ({
      ...base,
      own: { cloud, knobs, journal: null, loopback: false },
    });
    const clock = new VirtualClock();
    const clouds = new Clouds(() => {
      throw new Error("no journal was asked for");
    });
    const open = (name: string, at = clock, knobs = INSTANT) =>
      clouds.open(named(name, knobs).own, at, seededRandom(1));
    await open("one").create(order("1"), signal);
    expect(open("one").inspect()).toHaveLength(1);
    expect(open("two").inspect()).toHaveLength(0);
    expect(open("one", new VirtualClock()).inspect()).toHaveLength(0);
    open("one", clock, { ...INSTANT, quota: { instances: 1 } });
    await expect(
      open("one", clock, { ...INSTANT, quota: { instances: 1 } }).create(order("2"), signal),
    ).rejects.toThrow("Quota exceeded");
  });

  test("two simulated processes share a journal in memory, and its events tell what happened", async () => {
    const clock = new VirtualClock();
    const lines: string[] = [];
    const process = (seed: number) => {
      let read = 0;
      const unread = () => {
        const from = read;
        read = lines.length;
        return lines.slice(from);
      };
      const journal = { append: (line: string) => void lines.push(line), unread };
      return new FakeCloud({ clock, random: seededRandom(seed), journal });
    };
    const [one, two] = [process(1), process(2)];
    const [a, b] = await Promise.all([one.create(order("1"), signal), two.create(order("1"), signal)]);
    expect(a).toEqual(b);
    await two.delete(a.id, signal);
    expect(one.inspect()).toEqual([]);
    expect(readJournal(lines.join("\n")).map(({ op }) => op)).toEqual(["create", "delete"]);
  });

  test("a journal that cannot be opened is a fault of the configuration", async () => {
    const config = providerConfig(INSTANT);
    const own = { ...config.own, journal: join(tmpdir(), "no-such-folder", "cloud.jsonl") };
    const opened = fakeDriver.open({ ...config, own }, contextFor(new VirtualClock(), "i"));
    await expect(opened).rejects.toMatchObject({
      kind: "configuration",
      message: expect.stringContaining("no-such-folder"),
    });
  });
});

describe("the machine", () => {
  test("comes with its own host key and an unroutable address; no keys where none are checked", async () => {
    const rig = await fakeRig();
    const provider = await rig.open("i");
    const create = async (checking: boolean, nodeId: string) => {
      const steps = provider.create(
        {
          tag: { installation: "i", provider: rig.providerName, pool: pool.name, nodeId },
          hostname: `np${nodeId}`,
          pool,
          label: { ...label, hostKeyChecking: checking },
          az: "az2",
          imageExternalId: null,
          attempt: 1,
          request: {
            id: "1",
            labels: [],
            requestor: null,
            requestorData: null,
            relativePriority: 0,
            eventId: null,
            createdTime: null,
            tenantName: null,
          },
        },
        { signal, externalId: null },
      );
      for (;;) {
        const next = await steps.next();
        if (next.done) return next.value;
      }
    };
    const machine = await create(true, "0000000001");
    expect(machine).toMatchObject({ az: "az2", hostname: "np0000000001", resources: { instances: 1 } });
    expect(machine.interfaceIp).toMatch(/^198\.1[89]\./);
    expect(machine.hostKeys).toEqual([
      expect.stringMatching(/^ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI[\w+/]+=*$/),
    ]);
    expect((await create(false, "0000000002")).hostKeys).toEqual([]);
  });
});
