import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { connect, type RowOf } from "@nodeyard/client";
import { boskos } from "@nodeyard/connect-boskos";
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import { fakeConfig } from "../../../packages/nodeyard/cli/test/nodeyard.ts";
import { type AnsweredResource, BoskosCaller } from "../boskos-caller.ts";
import { type Opened, Yard } from "../yard.ts";

let yard: Yard;
let served: Opened;
let caller: BoskosCaller;
const small = { type: "small" };

const open = async (options: object = {}) => {
  served = await yard.connector(boskos, { "wait-seconds": 1, ...options });
  caller = new BoskosCaller(served.url);
};
const leases = async () =>
  (await yard.pool.call("list_leases", { query: { state: "waiting,granted" } })).items as readonly Required<
    RowOf<"list_leases">
  >[];
/** Takes every node of the pool. */
const takeAll = async () => [await taken(), await taken()] as const;
const taken = async (query: Readonly<Record<string, string>> = small): Promise<AnsweredResource> => {
  const found = await caller.acquire(query);
  expect(found, JSON.stringify(query)).toBeDefined();
  return found!;
};
const release = (name: string, dest = "dirty", owner = "me") =>
  caller.post("/release", { name, dest, owner });

beforeAll(async () => {
  yard = await Yard.open(fakeConfig().replace("max-servers: 5", "max-servers: 2"));
  await open();
});
afterEach(async () => {
  for (const { id } of await leases()) await yard.pool.call("release_lease", { path: { id }, body: {} });
  await expect.poll(leases).toEqual([]);
});
afterAll(() => yard.close());

test("a resource is the node of a lease, and its userdata says how to reach it", async () => {
  const { name, userdata, ...rest } = await taken({ ...small, dest: "in use", request_id: "build-17" });
  expect(rest).toMatchObject({ type: "small", state: "in use", owner: "me" });
  const [lease] = await leases();
  expect(lease).toMatchObject({ id: name, state: "granted", labels: ["small"] });
  expect(lease!.job).toEqual({ system: "boskos", id: "build-17", name: "me", url: null });
  const { items } = await yard.pool.call("list_lease_nodes", { path: { id: name } });
  const { id, interface_ip: address, host_keys: keys } = items[0]!;
  expect(userdata).toEqual({
    node: id,
    address,
    port: "22",
    user: "zuul",
    connection: "ssh",
    known_hosts: `${address} ${keys[0]}`,
  });
  expect((await yard.site.run("explain", "build-17")).out).toContain(name);
  expect(await release(name)).toEqual({ status: 200, text: "" });
  await expect.poll(leases).toEqual([]);
});

test("requests with an id are served in their order, also after the connector was started anew", async () => {
  const [first, second] = await takeAll();
  expect(await caller.acquire({ ...small, request_id: "a" })).toBeUndefined();
  expect(await caller.acquire({ ...small, request_id: "b" })).toBeUndefined();
  await served.close(0);
  await open();
  await release(first.name);
  expect(await caller.acquire({ ...small, request_id: "b" })).toBeUndefined();
  const a = await taken({ ...small, request_id: "a" });
  // The answer was lost, and the caller asks again.
  expect(await taken({ ...small, request_id: "a" })).toMatchObject({ name: a.name, userdata: a.userdata });
  await release(second.name);
  expect((await taken({ ...small, request_id: "b" })).name).not.toBe(a.name);
});

test("a second connector goes on with the same requests, and serves the same resources", async () => {
  const second = await yard.connector(boskos, { "wait-seconds": 1 });
  const other = new BoskosCaller(second.url);
  const query = { ...small, request_id: "both" };
  const [one, two] = await Promise.all([taken(query), other.acquire(query)]);
  expect(two?.name).toBe(one.name);
  expect((await leases()).length).toBe(1);
  expect(await other.post("/release", { name: one.name, dest: "dirty", owner: "me" })).toMatchObject({
    status: 200,
  });
  await expect.poll(leases).toEqual([]);
  await second.close(0);
});

test("what two connectors are asked for at the same time only one of them gives", async () => {
  const second = await yard.connector(boskos, { "wait-seconds": 1 });
  const { name } = await taken();
  await release(name, "kept");
  const callers = [caller, new BoskosCaller(second.url)];
  for (let round = 0; round < 6; round++) {
    const asked = Array.from({ length: 6 }, (_, n) =>
      callers[n % 2]!.acquire({ type: "small", state: "kept", dest: "mine", owner: `owner-${n}` }),
    );
    const given = (await Promise.all(asked)).filter((one) => one !== undefined);
    expect(given.map((one) => one.name)).toEqual([name]);
    const { owner } = given[0]!;
    // Each of its notes is kept, whichever connector was told.
    const note = (one: BoskosCaller, key: string) =>
      one.post("/update", { name, owner, state: "mine" }, JSON.stringify({ [key]: String(round) }));
    // The other connector sees a moment later whose it is.
    const told = callers.map((one, n) =>
      expect.poll(async () => (await note(one, `note-${n}`)).status).toBe(200),
    );
    await Promise.all(told);
    const noted = async () => JSON.parse((await leases())[0]!.data!).userdata;
    await expect.poll(noted).toMatchObject({ "note-0": String(round), "note-1": String(round) });
    expect((await release(name, "kept", owner)).status).toBe(200);
  }
  await second.close(0);
});

test("calls without a request id keep one place for each owner, and never share a node", async () => {
  const both = await Promise.all([taken(), taken()]);
  expect(both[0].name).not.toBe(both[1].name);
  for (let attempt = 0; attempt < 3; attempt++) expect(await caller.acquire(small)).toBeUndefined();
  expect(await caller.acquire({ ...small, owner: "you" })).toBeUndefined();
  expect((await leases()).map(({ state }) => state).sort()).toEqual([
    "granted",
    "granted",
    "waiting",
    "waiting",
  ]);
  for (const { name } of both) await release(name);
  const [mine, yours] = [await taken(), await taken({ ...small, owner: "you" })];
  expect([mine.owner, yours.owner]).toEqual(["me", "you"]);
});

test("a request that no caller asks for any more is given up, whether it waits or its node is there", async () => {
  await served.close(0);
  await open({ "request-ttl-seconds": 1 });
  const [first] = await takeAll();
  const asked = caller.acquire({ ...small, request_id: "gone" });
  const waiting = await vi.waitUntil(async () => (await leases()).find(({ state }) => state === "waiting"));
  expect(await asked).toBeUndefined();
  await release(first.name);
  await expect.poll(async () => (await leases()).map(({ id }) => id)).not.toContain(waiting.id);
  expect((await leases()).length).toBe(1);
  await served.close(0);
  await open();
});

test("updates keep what the owner notes; other owners, other states and other names are refused", async () => {
  const { name, userdata } = await taken();
  const update = (query: object, body?: string) =>
    caller.post("/update", { name, owner: "me", state: "busy", ...query }, body);
  expect(
    await update({}, JSON.stringify({ ...userdata, address: "10.9.8.7", job: "17", tmp: "x" })),
  ).toMatchObject({
    status: 200,
  });
  expect(await update({}, '{"tmp":""}')).toMatchObject({ status: 200 });
  expect(await update({})).toMatchObject({ status: 200 });
  // It is kept without an owner until somebody takes it from this state.
  expect(await release(name, "warm")).toMatchObject({ status: 200 });
  const [again] = JSON.parse(
    (await caller.post("/acquirebystate", { state: "warm", dest: "busy", owner: "you", names: name })).text,
  ) as AnsweredResource[];
  expect(again).toMatchObject({ name, owner: "you", userdata: { ...userdata, job: "17" } });
  expect(await update({})).toEqual({
    status: 401,
    text: `Update failed: ${name} - busy (me): owner mismatch request by me, currently owned by you\n`,
  });
  expect(await update({ owner: "you", state: "free" })).toEqual({
    status: 409,
    text: `Update failed: ${name} - free (you): state mismatch - expected busy, current free\n`,
  });
  expect(await release(name)).toMatchObject({ status: 401 });
  expect(await release(name.replace(/./g, "0"))).toMatchObject({ status: 404 });
  expect(await release("../tokens")).toMatchObject({ status: 404 });
  expect(await update({ owner: "you" }, '{"a":1}')).toMatchObject({ status: 400 });
  expect(await update({ owner: "you" }, JSON.stringify({ a: "x".repeat(4_096) }))).toMatchObject({
    status: 400,
  });
});

test("a lease that this connector did not make is none of its resources", async () => {
  const { id } = await yard.pool.call("create_lease", { body: { labels: ["small"] } });
  await expect.poll(async () => (await leases())[0]?.state).toBe("granted");
  expect(await release(id, "dirty", "")).toMatchObject({ status: 400 });
  expect(await release(id)).toMatchObject({ status: 404 });
});

test("a reset takes resources from owners that are silent; the metric counts them by state and owner", async () => {
  const { name } = await taken({ ...small, dest: "warm" });
  const metric = async () => JSON.parse((await caller.call("GET", "/metric", small)).text);
  expect(await metric()).toEqual({ type: "small", current: { warm: 1 }, owner: { me: 1 } });
  const reset = (expire: string) => caller.post("/reset", { ...small, state: "warm", expire, dest: "dirty" });
  expect((await reset("1h")).text).toBe("{}");
  expect((await reset("0s")).text).toBe(JSON.stringify({ [name]: "me" }));
  await expect.poll(metric).toEqual({ type: "small", current: {}, owner: {} });
});

test("types of a table are leased by their label; every other type is unknown", async () => {
  const before = served;
  await open({ types: { vm: { label: "large", "for-seconds": 600, "heartbeat-seconds": 60 } } });
  const { type, name } = await taken({ type: "vm" });
  expect(type).toBe("vm");
  const [lease] = await leases();
  expect(lease).toMatchObject({ id: name, labels: ["large"], heartbeat_seconds: 60 });
  expect(await caller.post("/acquire", { ...small, state: "free", dest: "busy", owner: "me" })).toEqual({
    status: 404,
    text: 'Acquire failed: resource type "small" does not exist\n',
  });
  await served.close(0);
  served = before;
  caller = new BoskosCaller(served.url);
});

test("a password is demanded where one is set", async () => {
  const file = join(yard.site.folder, "password");
  writeFileSync(file, "let me in, please\n");
  await expect(yard.connector(boskos, { username: "prow", "password-file": file })).rejects.toThrow(
    "one word",
  );
  writeFileSync(file, "let-me-in-please\n");
  const guarded = await yard.connector(boskos, { username: "prow", "password-file": file });
  const status = async (credentials?: string) => {
    const headers = credentials && { authorization: `Basic ${Buffer.from(credentials).toString("base64")}` };
    return (await new BoskosCaller(guarded.url, headers || {}).call("GET", "/metric", small)).status;
  };
  expect([await status(), await status("prow:wrong"), await status("prow:let-me-in-please")]).toEqual([
    401, 401, 200,
  ]);
  await expect(yard.connector(boskos, { username: "prow" })).rejects.toThrow("belong together");
  await guarded.close(0);
});

test("without an answer of the pool callers get 503, and call again", async () => {
  const alone = await yard.connector(boskos, {}, connect("http://127.0.0.1:9", { timeoutMs: 300 }));
  expect(await new BoskosCaller(alone.url).call("GET", "/metric", small)).toMatchObject({ status: 503 });
  await alone.close(0);
});
