import { expect, test } from "vitest";
import { type Lease, LeaseLost } from "../src/index.ts";
import { json, problem, type Sent, Server } from "./server.ts";

const EPOCH = 1_700_000_000_000;

/** A server with one lease, which a test changes. */
class Yard {
  state = "waiting";
  heartbeats = 0;
  /** The call that makes the lease is answered when this has resolved. */
  made: Promise<void> | undefined;
  /** What heartbeats are answered. */
  beat: () => Response | Error = () => json(this.row);
  readonly server = new Server((sent) => this.#answer(sent));

  get row() {
    const at = (ms: number) => new Date(EPOCH + ms).toISOString();
    return {
      ...{ id: "abc", state: this.state, labels: ["small"], request: "200-1", nodes: ["0000000001"] },
      ...{ created: at(0), until: at(3_600_000), heartbeat_seconds: 30 },
    };
  }

  lease(signal?: AbortSignal): Promise<Lease> {
    const wish = { labels: ["small"], heartbeat_seconds: 30 };
    return this.server.pass(this.server.client.lease(wish, signal === undefined ? {} : { signal }));
  }

  get released(): readonly unknown[] {
    return this.server.sent
      .filter(({ path }) => path.endsWith("/release"))
      .map(({ body }) => JSON.parse(body ?? ""));
  }

  #answer({ path }: Sent): Response | Error | "never" | Promise<Response> {
    if (path === "/v1/leases")
      return this.made === undefined ? json(this.row, 201) : this.made.then(() => json(this.row, 201));
    if (path.startsWith("/v1/events")) return problem(503, "api.too_many_streams", { "retry-after": "10" });
    if (path.endsWith("/release")) return new Response(null, { status: 204 });
    if (path.endsWith("/nodes")) return json({ items: [{ id: "0000000001" }] });
    this.heartbeats++;
    return this.beat();
  }
}

/** A yard whose lease is granted. */
async function granted(): Promise<{ readonly yard: Yard; readonly lease: Lease }> {
  const yard = new Yard();
  yard.state = "granted";
  return { yard, lease: await yard.lease() };
}

async function lost({ signal }: Lease): Promise<void> {
  if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve));
}

const passing = (yard: Yard, ms: number) => yard.server.clock.advance(ms);

test("heartbeats are sent while the lease is used, and it is released where its scope ends", async () => {
  const { yard, lease } = await granted();
  {
    await using used = lease;
    for (let step = 0; step < 20; step++) await passing(yard, 15_000);
    expect(yard.heartbeats).toBeGreaterThanOrEqual(20);
    expect(await yard.server.pass(used.nodes())).toEqual([{ id: "0000000001" }]);
    used.verdict = "dirty";
  }
  expect(yard.released).toEqual([{ verdict: "dirty" }]);
  const { heartbeats } = yard;
  await passing(yard, 600_000);
  expect(yard.heartbeats).toBe(heartbeats);
  expect(yard.server.clock.pending).toBe(0);
  expect(lease.signal.aborted).toBe(false);
});

test("a heartbeat shows a grant whose event was lost", async () => {
  const yard = new Yard();
  yard.beat = () => {
    yard.state = "granted";
    return json(yard.row);
  };
  const lease = await yard.lease();
  expect(lease.row.state).toBe("granted");
  await lease.end("infra-failure", "no network");
  expect(yard.released).toEqual([{ verdict: "infra-failure", why: "no network" }]);
});

test("a lease that the server has ended is reported lost, and releasing it is no error", async () => {
  const { yard, lease } = await granted();
  yard.beat = () => problem(404, "api.not_found");
  await passing(yard, 15_000);
  await yard.server.pass(lost(lease));
  expect(lease.signal.reason).toBeInstanceOf(LeaseLost);
  await lease.end();
});

test("heartbeats that are not answered are tried again, and the lease is lost before the server ends it", async () => {
  const { yard, lease } = await granted();
  const { clock } = yard.server;
  const start = clock.monotonic();
  yard.beat = () => new TypeError("no route");
  await yard.server.pass(lost(lease));
  // The last that was answered is the request itself.
  expect(clock.monotonic() - start).toBeLessThanOrEqual(30_000);
  expect(clock.monotonic() - start).toBeGreaterThan(25_000);
  expect(yard.heartbeats).toBeGreaterThan(5);
});

test("one lost heartbeat loses nothing", async () => {
  const { yard, lease } = await granted();
  let count = 0;
  yard.beat = () => (++count % 3 === 1 ? new TypeError("cut") : json(yard.row));
  for (let step = 0; step < 400; step++) {
    await passing(yard, 500);
    await new Promise(setImmediate);
  }
  expect(lease.signal.aborted).toBe(false);
  await lease.end();
});

test("what is given up while it waits is released", async () => {
  const yard = new Yard();
  const controller = new AbortController();
  const waiting = yard.lease(controller.signal);
  await passing(yard, 2_000);
  controller.abort(new Error("enough"));
  await expect(waiting).rejects.toThrow("enough");
  expect(yard.released).toEqual([{ verdict: "ok" }]);
  const declined = new Yard();
  declined.state = "failed";
  await expect(declined.lease()).rejects.toMatchObject({ code: "client.lease_failed" });
  expect(declined.released).toHaveLength(1);
});

test("a lease that a call makes after the caller has given up is released", async () => {
  const yard = new Yard();
  const made = Promise.withResolvers<void>();
  yard.made = made.promise;
  const controller = new AbortController();
  const waiting = yard.lease(controller.signal);
  await passing(yard, 1_000);
  controller.abort(new Error("enough"));
  await expect(waiting).rejects.toThrow("enough");
  expect(yard.released).toEqual([]);
  made.resolve();
  await passing(yard, 1_000);
  expect(yard.released).toHaveLength(1);
});
