import { VirtualClock } from "@nodeyard/runtime";
import fc from "fast-check";
import { expect, test } from "vitest";
import { ListWatch } from "../src/index.ts";

const { signal } = new AbortController();
interface Server {
  readonly id: string;
  readonly status: string;
  /** Milliseconds since the epoch. */
  readonly updated: number;
}
const isGone = ({ status }: Server) => status === "DELETED";

/** A cloud whose servers change as told, and that counts how often it is asked. */
function cloud() {
  const clock = new VirtualClock();
  const servers = new Map<string, Server>();
  const asked: (string | undefined)[] = [];
  const failures: unknown[] = [];
  let broken = false;
  const list = async (_: AbortSignal, since?: string) => {
    asked.push(since);
    if (broken) throw new Error("the service is down");
    const from = since === undefined ? Number.NEGATIVE_INFINITY : Date.parse(since);
    return [...servers.values()].filter(({ status, updated }) =>
      since === undefined ? status !== "DELETED" : updated >= from,
    );
  };
  const watch = new ListWatch<Server>({
    clock,
    list,
    what: "list of servers",
    idOf: ({ id }) => id,
    isGone,
    changedAt: ({ updated }) => updated,
    onFailure: (error) => void failures.push(error),
  });
  return {
    clock,
    watch,
    asked,
    failures,
    set: (id: string, status: string) => void servers.set(id, { id, status, updated: clock.now() }),
    break: (yes: boolean) => {
      broken = yes;
    },
    up: (id: string) =>
      watch.wait("active", id, ({ item: one }) => (one?.status === "ACTIVE" ? one : undefined), signal),
    gone: (id: string) =>
      watch.wait(
        "gone",
        id,
        ({ item: one }) => (one === undefined || isGone(one) ? true : undefined),
        signal,
      ),
    crowd: (size: number) => {
      for (let one = 0; one < size; one++)
        servers.set(`other-${one}`, { id: `other-${one}`, status: "ACTIVE", updated: 1 });
    },
  };
}

test("one listing now and then answers twenty waiters; without waiters there is no listing", async () => {
  const site = cloud();
  const ids = Array.from({ length: 20 }, (_, index) => `s${index}`);
  for (const id of ids) site.set(id, "BUILD");
  const waits = Promise.all(ids.map((id) => site.up(id)));
  await site.clock.advance(10_000);
  for (const id of ids) site.set(id, "ACTIVE");
  await site.clock.advance(1_600);
  await waits;
  expect(site.asked.length).toBeLessThanOrEqual(13);
  const before = site.asked.length;
  await site.clock.advance(60_000);
  expect(site.asked.length).toBe(before);
  expect(site.clock.pending).toBe(0);
});

test("few servers are always listed all", async () => {
  const site = cloud();
  site.crowd(199);
  site.set("a", "BUILD");
  const wait = site.up("a");
  await site.clock.advance(10_000);
  site.set("a", "ACTIVE");
  await site.clock.advance(2_000);
  await wait;
  expect(site.asked.length).toBeGreaterThan(3);
  expect(site.asked.every((since) => since === undefined)).toBe(true);
});

test("of many only changes are asked for after the first time, deleted ones included; once a minute everything", async () => {
  const site = cloud();
  site.crowd(200);
  site.set("a", "ACTIVE");
  site.set("b", "BUILD");
  const wait = site.gone("a");
  await site.clock.advance(4_000);
  site.set("a", "DELETED");
  await site.clock.advance(4_000);
  await wait;
  expect(site.asked[0]).toBeUndefined();
  expect(site.asked.slice(1).every((since) => since !== undefined)).toBe(true);
  const later = site.up("b");
  await site.clock.advance(61_000);
  expect(site.asked.filter((since) => since === undefined).length).toBe(2);
  site.set("b", "ACTIVE");
  await site.clock.advance(3_000);
  await later;
});

test("a service that is down delays the waiters with growing pauses, and fails none of them", async () => {
  const site = cloud();
  site.set("a", "BUILD");
  const wait = site.up("a");
  site.break(true);
  await site.clock.advance(60_000);
  expect(site.failures.length).toBeGreaterThan(2);
  expect(site.failures.length).toBeLessThan(10);
  site.break(false);
  site.set("a", "ACTIVE");
  await site.clock.advance(16_000);
  expect((await wait).status).toBe("ACTIVE");
});

test("a list that was asked for before the wait began does not answer it", async () => {
  const site = cloud();
  await site.watch.all(signal, true);
  site.set("a", "ACTIVE");
  const wait = site.gone("b");
  const other = site.up("a");
  await site.clock.advance(3_000);
  await Promise.all([wait, other]);
  expect(site.asked.length).toBe(2);
});

test("what once took long is not looked for at once the next time", async () => {
  const site = cloud();
  site.set("a", "BUILD");
  const first = site.up("a");
  await site.clock.advance(10_000);
  site.set("a", "ACTIVE");
  await site.clock.advance(3_000);
  await first;
  const before = site.asked.length;
  site.set("b", "BUILD");
  const second = site.up("b");
  await site.clock.advance(5_500);
  expect(site.asked.length).toBe(before);
  site.set("b", "ACTIVE");
  await site.clock.advance(5_000);
  await second;
});

test("a wait ends with its caller, and the last one takes the timer along", async () => {
  const site = cloud();
  const controller = new AbortController();
  const wait = site.watch.wait("active", "a", () => undefined, controller.signal);
  controller.abort(new Error("never mind"));
  await expect(wait).rejects.toThrow("never mind");
  await site.clock.advance(20_000);
  expect(site.clock.pending).toBe(0);
});

test("every waiter learns of a change within one look, whenever it happens, and the list is the actual one", async () => {
  const event = fc.record({
    after: fc.integer({ min: 0, max: 9_000 }),
    id: fc.constantFrom("a", "b", "c"),
    status: fc.constantFrom("BUILD", "ACTIVE", "DELETED"),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(event, { maxLength: 20 }), fc.boolean(), async (events, many) => {
      const site = cloud();
      if (many) site.crowd(220);
      // Somebody waits all the time, so that looks go on.
      const controller = new AbortController();
      site.watch.wait("active", "never", () => undefined, controller.signal).catch(() => {});
      const last = new Map<string, string>();
      for (const { after, id, status } of events) {
        await site.clock.advance(after);
        site.set(id, status);
        last.set(id, status);
      }
      await site.clock.advance(2_500);
      const listed = await site.watch.all(signal, false);
      for (const [id, status] of last)
        expect(listed.get(id)?.status).toBe(status === "DELETED" ? undefined : status);
      controller.abort(new Error("done"));
    }),
    { numRuns: 60 },
  );
});
