import {
  DEAD_LETTERS,
  deadLetterPath,
  encodeComponent,
  encodeDeadLetter,
  encodeNode,
  encodeRequest,
  leaseRequestor,
  type NewNode,
  type NewRequest,
  newComponent,
  newNode,
  newRequest,
  paths,
} from "@nodeyard/model";
import { explain, type MemberReplies, type OperationHandles, type Story } from "@nodeyard/operations";
import { seededRandom, VirtualClock } from "@nodeyard/runtime";
import type { PastEvent } from "@nodeyard/telemetry";
import { createMemoryTree, ensurePath } from "@nodeyard/tree";
import { afterEach, beforeEach, expect, test } from "vitest";
import { merge } from "../../../pool/operations/src/explain/member-replies.ts";

let handles: OperationHandles;
let journal: PastEvent[];
let asked: MemberReplies["asked"];

beforeEach(async () => {
  const clock = new VirtualClock();
  const random = seededRandom(5);
  handles = { tree: createMemoryTree({ clock, random }).connect({ name: "explain" }), clock, random };
  journal = [];
  asked = { answers: [], silent: [] };
  for (const path of [paths.nodes, paths.requests, paths.requestsLock, paths.component("pool")])
    await ensurePath(handles.tree, path);
});
afterEach(() => handles.tree.close());

async function pool(id: string, labels: readonly string[]): Promise<void> {
  const record = newComponent({
    hostname: "here",
    kind: "pool",
    state: "running",
    id,
    providerName: "cloud",
    supportedLabels: [...labels],
  });
  await handles.tree.create(`${paths.component("pool")}/${id}-`, encodeComponent(record), {
    sequential: true,
  });
}

async function request(fields: Partial<NewRequest>): Promise<Story> {
  const record = newRequest({ state: "requested", nodeTypes: ["small"], requestor: "zuul", ...fields }, 100);
  const { path } = await handles.tree.create(`${paths.requests}/200-`, encodeRequest(record), {
    sequential: true,
  });
  return story("request", path.slice(path.lastIndexOf("/") + 1));
}

async function node(fields: Partial<NewNode>, holder?: string): Promise<Story> {
  const record = newNode({ state: "ready", type: ["small"], provider: "cloud", ...fields }, 100);
  const { path } = await handles.tree.create(`${paths.nodes}/`, encodeNode(record), { sequential: true });
  if (holder !== undefined) await hold(`${path}/lock`, holder);
  return story("node", path.slice(path.lastIndexOf("/") + 1));
}

async function hold(parent: string, holder: string): Promise<void> {
  await ensurePath(handles.tree, parent);
  await handles.tree.create(`${parent}/x__lock__`, Buffer.from(holder), { sequential: true });
}

async function story(kind: Story["kind"], id: string): Promise<Story> {
  const history = merge(asked, { events: journal, problem: null });
  const found = await explain(handles, { kind, id }, async () => ({ asked, history }));
  return found!;
}

function past(event: string, facts: PastEvent["facts"]): PastEvent {
  return { at: 100_000, event, request: "200-0000000000", node: null, facts };
}

test("without a launcher nothing is promised, whatever one has noted before", async () => {
  journal = [past("request.waits", { code: "capacity.pool", facts: {} })];
  expect(await request({})).toMatchObject({
    waits_for: { code: "pools.none", source: "tree" },
    next: "Nothing, until a launcher has registered a pool.",
  });
});

test("a noted reason counts until something else happens to the request", async () => {
  await pool("a", ["small"]);
  journal = [past("request.waits", { code: "capacity.pool", facts: { limit: 1 }, nextTry: 5 })];
  const next_try = new Date(5).toISOString();
  const waits = { code: "capacity.pool", facts: { limit: 1 }, next_try, source: "journal" };
  expect((await request({})).waits_for).toMatchObject(waits);
  journal.push(past("request.reset", {}));
  expect((await story("request", "200-0000000000")).waits_for).toMatchObject({ code: "queue.next" });
});

test("a reason of a later release is shown as it is", async () => {
  await pool("a", ["small"]);
  journal = [past("request.waits", { code: "moon.wrong-phase", facts: { phase: 3 } })];
  expect(await request({})).toMatchObject({
    waits_for: { code: "moon.wrong-phase", facts: { phase: 3 } },
    next: "A launcher reconsiders it.",
  });
});

test("which pools may still decide, and which have declined", async () => {
  await pool("a", ["small"]);
  await pool("b", ["large"]);
  const { waits_for, about } = await request({ declinedBy: ["a"] });
  expect(waits_for).toMatchObject({ code: "declined.here", facts: { undecided: ["b"] } });
  expect(about).toMatchObject({ declined_by: ["a"], pools_that_may: [] });
});

test("pending: with a handler, and without one", async () => {
  await pool("a", ["small"]);
  expect((await request({ state: "pending" })).waits_for).toMatchObject({ code: "pending.elsewhere" });
  await hold(paths.requestLock("200-0000000000"), "launcher-7");
  const held = await story("request", "200-0000000000");
  expect(held).toMatchObject({ about: { handled_by: "launcher-7" }, waits_for: { code: "handling" } });
});

test("a node whose record cannot be read says so, what of it can be read, and how to be rid of it", async () => {
  await node({ externalId: "server-5" }, "zuul");
  const path = `${paths.nodes}/0000000000`;
  await handles.tree.set(path, Buffer.from('{"state": "verifying", "provider": "cloud", "pool": 7}'));
  expect(await story("node", "0000000000")).toMatchObject({
    state: "unreadable",
    about: { provider: "cloud", pool: null, locked_by: "zuul" },
    waits_for: { code: "node.unreadable", facts: { error: expect.stringContaining("verifying") } },
    next: expect.stringContaining("nodeyard delete 0000000000"),
  });
  await handles.tree.set(path, Buffer.from("nonsense"));
  expect(await story("node", "0000000000")).toMatchObject({ state: "unreadable", about: { provider: null } });
});

test("a node names its user, and who acts on it next", async () => {
  expect((await node({ state: "used" })).next).toBe(
    "Nothing, until a launcher that serves cloud is registered: none is now.",
  );
  await pool("a", ["small"]);
  expect((await node({ state: "used" })).next).toBe("A launcher deletes the machine, then the record.");
  expect((await node({})).next).toBe("It is free: the next request for small gets it.");
  expect((await node({ type: ["renamed"] })).next).toBe(
    "No pool of cloud offers renamed at present: it is kept until one does, until max-ready-age, or: nodeyard delete 0000000003",
  );
  expect((await node({ state: "building" })).waits_for?.code).toBe("node.orphaned");
  expect((await node({ state: "building" }, "launcher-7")).waits_for?.code).toBe("node.launching");
  expect((await node({ state: "in-use" })).waits_for?.code).toBe("node.abandoned");
  const leased = await node({ state: "in-use" }, leaseRequestor("0123456789ab"));
  expect([leased.waits_for, leased.about.lease]).toEqual([null, "0123456789ab"]);
});

test("a node that is used again says whose it is, which use it is, and that it is checked", async () => {
  await pool("a", ["small"]);
  const only = { tenant: "t1", client: "zuul" };
  const again = (more: object) => ({
    driverData: { nodeyard: { reuse: { settings: "s", since: 1, times: 2, only, ...more } } },
  });
  const checked = await node({ state: "building", ...again({ checking: true }) }, "launcher-7");
  expect(checked.waits_for?.code).toBe("node.checking");
  expect(checked.next).toBe("If it passes it is ready again; otherwise it is deleted.");
  expect((await node(again({}))).next).toBe(
    "It is free: the next request of tenant t1 and client zuul for small gets it.",
  );
  expect((await node({ state: "in-use", ...again({}) }, "zuul")).next).toContain("(use 3 of its machine)");
  expect((await node({ state: "used", ...again({}) })).waits_for?.meaning).toContain("another use");
});

test("a node that cannot be deleted says so, since when, and what to do", async () => {
  await pool("a", ["small"]);
  await ensurePath(handles.tree, DEAD_LETTERS);
  const id = "0000000000";
  const letter = { node: id, provider: "cloud", attempts: 10, since: 5_000, error: "it is in use" };
  await handles.tree.create(deadLetterPath(id), encodeDeadLetter(letter));
  const { waits_for, next } = await node({ state: "deleting" });
  expect(waits_for).toMatchObject({
    code: "node.dead-letter",
    since: new Date(5_000).toISOString(),
    facts: { attempts: 10, error: "it is in use" },
  });
  expect(next).toBe(`Find out what keeps cloud from deleting it, then: nodeyard delete ${id} --now`);
});

test("a deletion that fails shows the last error", async () => {
  await pool("a", ["small"]);
  const event = "node.delete-failed";
  journal = [
    { ...past(event, { error: "the cloud is closed" }), node: "0000000000" },
    { ...past(event, { error: "of another node" }), node: "0000000009" },
  ];
  expect((await node({ state: "deleting" })).waits_for).toMatchObject({
    code: "node.to-delete",
    facts: { last_error: "the cloud is closed" },
  });
});
