import { createServer } from "node:net";
import { type Driver, DriverError } from "@nodeyard/driver";
import { decodeStandings, STANDINGS } from "@nodeyard/model";
import { systemClock, systemRandom } from "@nodeyard/runtime";
import { noHistory } from "@nodeyard/telemetry";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  fakeProvider,
  launcherConfig,
  type Rig,
  startRig,
  staticProvider,
  until,
} from "../../launcher/test/rig.ts";
import { World } from "../../launcher/test/rules/world.ts";
import { explain, queryMembers, readStandings, standingTexts, textsOf } from "../src/index.ts";

/** A driver whose providers cannot be opened, in the words of a cloud. */
const closed = (fake: Driver): Driver => ({
  ...fake,
  open: () =>
    Promise.reject(new DriverError("transient", "401 Unauthorized: the token has expired\nsecond line")),
});

describe("what is wrong with a real launcher", () => {
  let rig: Rig;
  let port: number;

  beforeAll(async () => {
    // A port where nothing listens.
    const server = createServer().listen(0, "127.0.0.1");
    await new Promise((resolve) => server.once("listening", resolve));
    ({ port } = server.address() as { port: number });
    await new Promise((resolve) => server.close(resolve));
    const host = { name: "127.0.0.1", labels: ["small"], username: "zuul", "connection-port": port };
    const labels = new Map([
      ["lost", { name: "lost", minReady: 0, maxReadyAgeMs: Number.POSITIVE_INFINITY }],
    ]);
    rig = await startRig(launcherConfig([staticProvider([host]), fakeProvider()], { labels }), {
      around: closed,
    });
  });
  afterAll(() => rig[Symbol.asyncDispose]());

  const standing = (id: string) => rig.launcher.view.standings.get(id);
  const failing = (id: string) =>
    until(`${id} is failing`, () => {
      const one = standing(id);
      return one?.state === "failing" && one;
    });

  test("a static host that does not answer: with its cause, and when it is tried again", async () => {
    // While it is being tried no next try is known.
    const host = await until("it is tried again", () => {
      const one = standing(`host/lab/zuul@127.0.0.1:${port}`);
      return typeof one?.nextTry === "number" && one;
    });
    expect(host).toMatchObject({ code: "host.silent", members: ["host"] });
    expect(host.cause).toContain("nothing to scan here");
    expect(host.nextTry).toBeGreaterThan(host.since!);
    expect(await failing("provider/lab")).toMatchObject({ code: "provider.no-hosts", because: host.id });
  });

  test("a provider that cannot be opened: the first line of its own error", async () => {
    expect(await failing("provider/cloud")).toMatchObject({
      code: "provider.failing",
      cause: "401 Unauthorized: the token has expired",
    });
  });

  test("labels that nobody can serve follow from these, or are offered by no pool", async () => {
    expect((await failing("label/small")).cause).toMatch(/nothing to scan here|401 Unauthorized/);
    expect(await failing("label/large")).toMatchObject({ code: "label.unserved", because: "provider/cloud" });
    expect(await failing("label/lost")).toMatchObject({ code: "label.no-pool" });
    expect(standing("launcher/host")).toMatchObject({ state: "good" });
  });

  test("a command reads the same from the tree alone", async () => {
    await failing("label/lost");
    const read = await readStandings({ tree: rig.tree, clock: systemClock, random: systemRandom });
    const plain = (all: readonly { id: string; state: string; cause: string | null }[]) =>
      all.map(({ id, state, cause }) => ({ id, state, cause }));
    expect(plain(read)).toEqual(plain(rig.launcher.view.standings.list()));
  });
});

test("explain says of a label why its hosts are not offered, and what to do", async () => {
  const host = { name: "127.0.0.1", labels: ["small"], username: "zuul", "connection-port": 1 };
  await using rig = await startRig(launcherConfig([staticProvider([host])]));
  await until("it is failing", () => rig.launcher.view.standings.get("label/small")?.state === "failing");
  const handles = { tree: rig.tree, clock: systemClock, random: systemRandom };
  const query = queryMembers(handles, () => noHistory("there is none"), 500);
  const story = await until("it is tried again", async () => {
    const found = await explain(handles, { kind: "label", id: "small" }, query);
    return typeof found?.waits_for?.next_try === "string" && found;
  });
  expect(story?.waits_for).toMatchObject({
    code: "host.silent",
    facts: { of: "host/lab/zuul@127.0.0.1:1", error: expect.stringContaining("nothing to scan here") },
  });
  expect(story?.next).toContain("Repair the host or its network");
  expect(story?.about.hosts).toEqual([expect.stringMatching(/^lab\/zuul@127\.0\.0\.1:1 is failing \(/)]);
});

test("what becomes good again says so, and a launcher that goes takes its report along", async () => {
  let isOpen = false;
  const around = (fake: Driver): Driver => ({
    ...fake,
    open: (...args) => (isOpen ? fake.open(...args) : Promise.reject(new Error("not yet"))),
  });
  await using rig = await startRig(launcherConfig([fakeProvider()]), { around });
  const is = (state: string | undefined) =>
    until(
      `the provider is ${state}`,
      () => rig.launcher.view.standings.get("provider/cloud")?.state === state,
    );
  await is("failing");
  isOpen = true;
  await is("good");
  const other = await rig.another();
  await other.close(100);
  expect(rig.launcher.view.standings.get("provider/cloud")).toMatchObject({ state: "good" });
});

test("the cause of a try that the driver repeats is shown at once, and stays beside the time limit", async () => {
  const world = new World();
  const hanging = (fake: Driver): Driver => ({
    ...fake,
    open(_, { observe }) {
      const error = new Error("connect ECONNREFUSED 10.0.0.1:443");
      observe?.({ operation: "pods.GET", result: "none", ms: 1, error });
      return new Promise(() => {});
    },
  });
  world.launch("a", launcherConfig([fakeProvider()]), { wrap: hanging });
  const cause = () =>
    world
      .children(STANDINGS)
      .flatMap((member) => decodeStandings(Buffer.from(world.text(`${STANDINGS}/${member}`) ?? "")).facts)
      .find(({ kind }) => kind === "provider")?.cause;
  await world.until("the cause is there", () => cause() === "connect ECONNREFUSED 10.0.0.1:443", 5_000);
  await world.until(
    "the time limit is named beside it",
    () => /^connect ECONNREFUSED .* did not answer within 60000 ms \(open\)/.test(cause() ?? ""),
    70_000,
  );
});

test("a launcher whose clock jumped runs and does not do all of its work, until three looks agree", async () => {
  const world = new World();
  const { launcher } = await world.start("a", launcherConfig([fakeProvider()]));
  const is = (code: string) =>
    world.until(code, () => launcher.view.standings.get("launcher/a")?.code === code, 400_000);
  await is("member.runs");
  world.clock.jump(86_400_000);
  await is("member.not-ready");
  const { state, cause } = launcher.view.standings.get("launcher/a")!;
  expect([state, cause]).toEqual(["degraded", expect.stringContaining("clock and the tree's differ")]);
  await is("member.runs");
});

test("sliver machines: silent, left alone, counting, waiting, each with its words", async () => {
  const none = { capacity: {}, guaranteed: {}, slivers: [] };
  const answers = { error: null, faults: { counting: false, waitingThreads: 0 } };
  const machines = [
    { name: "a", ...none, ...answers },
    { name: "b", ...none, error: "connect ECONNREFUSED 10.0.0.2:8008\nsecond line" },
    { name: "c", ...none, ...answers, error: "node c is written by other in epoch 3" },
    { name: "d", ...none, ...answers, faults: { counting: true, waitingThreads: 0 } },
    { name: "e", ...none, ...answers, faults: { counting: false, waitingThreads: 2 } },
  ];
  const around = (fake: Driver): Driver => ({
    ...fake,
    async open(...args) {
      const provider = await fake.open(...args);
      return {
        ...provider,
        offers: { ...provider.offers, slivers: { machines: async () => machines } },
      } as never;
    },
  });
  await using rig = await startRig(launcherConfig([fakeProvider()]), { around });
  const shown = () =>
    rig.launcher.view.standings
      .list()
      .filter(({ kind }) => kind === "sliver-machine")
      .map(({ name, state, code, cause }) => [name, state, code, cause])
      .sort();
  await until("all are shown", () => shown().length === machines.length);
  expect(shown()).toEqual([
    ["cloud/a", "good", "sliver-machine.answers", null],
    ["cloud/b", "failing", "sliver-machine.silent", "connect ECONNREFUSED 10.0.0.2:8008"],
    ["cloud/c", "failing", "sliver-machine.unchanged", "node c is written by other in epoch 3"],
    ["cloud/d", "degraded", "sliver-machine.counting", null],
    ["cloud/e", "degraded", "sliver-machine.waits", "2 have waited for half a minute"],
  ]);
});

test("each code has a meaning, and one that is not good says what happens next", () => {
  for (const code of Object.keys(standingTexts)) {
    const { meaning, remedy } = textsOf({ code, name: "it" });
    expect(meaning).not.toBe("");
    expect(remedy).not.toContain("NAME");
  }
});
