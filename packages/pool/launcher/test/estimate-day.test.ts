import { askMembers } from "@nodeyard/asking";
import { paths } from "@nodeyard/model";
import { type Random, seededRandom } from "@nodeyard/runtime";
import { expect, test } from "vitest";
import { fakeProvider, launcherConfig, World } from "./rules/world.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
/** From when a request is made until `explain` asks about it, milliseconds. */
const LATER = 2_000;

interface Site {
  readonly servers: number;
  /** Changes per hour from nine to six, from six to ten, and at night; each makes one to six requests. */
  readonly changes: readonly [day: number, evening: number, night: number];
  /** How long users keep a node: the median, milliseconds, and the sigma of its logarithm. */
  readonly users: Readonly<Record<string, readonly [median: number, sigma: number]>>;
  readonly seed: number;
}

interface Demand {
  readonly at: number;
  readonly labels: readonly string[];
  readonly useMs: number;
}

const gate: Site = {
  servers: 10,
  changes: [9, 5, 2],
  users: { small: [8 * MINUTE, 0.7], large: [25 * MINUTE, 0.4] },
  seed: 7,
};
/** Three machines, and users of whom one keeps his for a minute and the next for hours. */
const lab: Site = {
  servers: 3,
  changes: [2.6, 1.6, 0.8],
  users: { small: [8 * MINUTE, 1.2], large: [25 * MINUTE, 1] },
  seed: 7,
};

function* demandOfADay({ changes: [day, evening, night], users }: Site, random: Random): Generator<Demand> {
  const exponential = () => -Math.log(1 - random.float());
  const normal = () => Math.sqrt(2 * exponential()) * Math.cos(2 * Math.PI * random.float());
  for (let at = 0; at < 24 * HOUR; ) {
    const hour = at / HOUR;
    const perHour = hour > 9 && hour < 18 ? day : hour > 6 && hour < 22 ? evening : night;
    at += (exponential() * HOUR) / perHour;
    const jobs = 1 + Math.floor(random.float() * 6);
    for (let job = 0; job < jobs; job++) {
      const label = random.float() < 0.75 ? "small" : "large";
      const [median, sigma] = users[label]!;
      const labels = random.float() < 0.1 ? [label, label] : [label];
      yield { at: at + job * 50, labels, useMs: median * Math.exp(sigma * normal()) };
    }
  }
}

/** One request of a day: what was said of it, and how long it took from then on, milliseconds. */
interface Said {
  readonly waits: boolean;
  readonly likelyMs: number | null;
  readonly unknown: string | null;
  readonly tookMs: number;
}

/** Lives a day on a launcher, and asks about every request. */
async function liveADay(site: Site): Promise<readonly Said[]> {
  const world = new World({
    latency: {
      create: { minMs: 500, maxMs: 3_000 },
      boot: { minMs: 40_000, maxMs: 90_000 },
      delete: { minMs: 2_000, maxMs: 20_000 },
      read: { minMs: 0, maxMs: 0 },
    },
  });
  const { clock, other: tree } = world;
  const provider = fakeProvider("cloud", {}, { "max-servers": site.servers });
  const { launcher } = await world.start("a", launcherConfig([provider]));
  const fulfilled = new Map<string, () => void>();
  launcher.view.onEvent((event) => {
    if (event.type === "request" && event.after?.record.state === "fulfilled") fulfilled.get(event.id)?.();
  });
  const pause = (ms: number) => new Promise<void>((resolve) => void clock.setTimer(ms, resolve));
  const seconds = () => Math.round(clock.now()) / 1_000;
  const put = (node: string, state: string) =>
    tree.set(
      paths.node(node),
      Buffer.from(JSON.stringify({ ...world.node(node), state, state_time: seconds() })),
    );
  await world.folder(paths.requests);
  const said: Said[] = [];
  const live = async ({ labels, useMs }: Demand) => {
    const record = { state: "requested", state_time: seconds(), node_types: labels, requestor: "zuul" };
    const data = Buffer.from(JSON.stringify(record));
    const { path } = await tree.create(`${paths.requests}/100-`, data, { sequential: true });
    const id = path.slice(path.lastIndexOf("/") + 1);
    const served = new Promise<void>((resolve) => fulfilled.set(id, resolve));
    await pause(LATER);
    const asked = clock.monotonic();
    const { answers } = await askMembers({ tree, clock }, { request: id }, 3_000);
    await served;
    const { code, estimate, unknown } = answers[0]!.testimony.pools[0]!;
    const waits = code !== "handling";
    said.push({ waits, likelyMs: estimate?.likelyMs ?? null, unknown, tookMs: clock.monotonic() - asked });
    const nodes = world.request(id)!.nodes as string[];
    const lock = { ephemeral: true, sequential: true };
    const contender = (node: string) => `${paths.nodeLock(node)}/${"b".repeat(32)}__lock__`;
    const locks = await Promise.all(nodes.map((node) => tree.create(contender(node), undefined, lock)));
    await tree.delete(paths.request(id));
    for (const node of nodes) await put(node, "in-use");
    await pause(useMs);
    for (const node of nodes) await put(node, "used");
    for (const { path } of locks) await tree.delete(path);
  };
  const lives: Promise<void>[] = [];
  const began = clock.monotonic();
  for (const demand of demandOfADay(site, seededRandom(site.seed))) {
    await world.run(Math.max(0, began + demand.at - clock.monotonic()));
    lives.push(live(demand));
  }
  for (let hours = 0; said.length < lives.length && hours < 48; hours++) await world.run(HOUR);
  await Promise.all(lives);
  return said;
}

function rightOf(said: readonly Said[]): { readonly estimates: number; readonly right: number } {
  const known = said.filter(({ likelyMs }) => likelyMs !== null);
  const right = known.filter(({ likelyMs, tookMs }) => tookMs <= 2 * likelyMs! && 2 * tookMs >= likelyMs!);
  return { estimates: known.length, right: right.length };
}

test("a busy day: nearly every request has an estimate, and four of five are within a factor of two", async () => {
  const said = await liveADay(gate);
  for (const some of [said.filter(({ waits }) => waits), said.filter(({ waits }) => !waits)]) {
    const { estimates, right } = rightOf(some);
    console.log(`${some.length} requests, ${estimates} estimates, ${right} within a factor of two`);
    expect(some.length).toBeGreaterThan(150);
    expect(estimates).toBeGreaterThan(0.9 * some.length);
    expect(right).toBeGreaterThan(0.8 * estimates);
  }
});

test("uneven users: estimates are right as often, and without an estimate the reason is given", async () => {
  const waiting = (await liveADay(lab)).filter(({ waits }) => waits);
  const { estimates, right } = rightOf(waiting);
  console.log(`${waiting.length} requests, ${estimates} estimates, ${right} within a factor of two`);
  expect(estimates).toBeGreaterThan(10);
  expect(estimates).toBeLessThan(waiting.length / 2);
  expect(right).toBeGreaterThanOrEqual(0.8 * estimates);
  const reasons = new Set(waiting.map(({ unknown }) => unknown));
  expect(reasons).toEqual(new Set([null, "no-launches", "no-uses", "uneven"]));
});
