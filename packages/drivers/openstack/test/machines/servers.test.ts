import {
  ApiError,
  callText,
  machineMetadata,
  machineSteps,
  memoryEvidence,
  NoAnswer,
  type Tag,
} from "@nodeyard/driver";
import { VirtualClock } from "@nodeyard/runtime";
import { expect, test } from "vitest";
import type { Api, Server } from "../../src/api/index.ts";
import { serverSchema } from "../../src/api/kinds.ts";
import { createCall, serversOf, suspendsOf } from "../../src/machines/servers.ts";
import { serverWork } from "../../src/machines/steps.ts";

const tag: Tag = { installation: "i", provider: "p", pool: "main", nodeId: "0000000001" };
const { signal } = new AbortController();
const serverOf = (status: string, more: object = {}) =>
  serverSchema.parse({ id: "s", status, metadata: machineMetadata(tag), ...more });

const DELETING = { "OS-EXT-STS:task_state": "deleting" };

/** nova with a server whose listing can miss it, beside so many others. */
function nova(beside = 0) {
  const clock = new VirtualClock();
  const updated = new Date(clock.now()).toISOString();
  const others = Array.from({ length: beside }, (_, index) =>
    serverSchema.parse({ id: `other-${index}`, status: "ACTIVE", updated }),
  );
  const state = {
    server: undefined as Server | undefined,
    fault: undefined as Error | Server["fault"],
    listed: true,
    looks: 0,
    orders: [] as string[],
    onDelete: () => {},
    onReset: () => {},
  };
  let answer = Promise.withResolvers<string>();
  const servers = {
    list: async () => [...others, ...(state.server !== undefined && state.listed ? [state.server] : [])],
    create: async () => ({ id: await answer.promise }),
    delete: async (id: string) => {
      state.orders.push(`delete ${id}`);
      state.onDelete();
    },
    get: async () => {
      state.looks++;
      if (state.fault instanceof Error) throw state.fault;
      return state.server && { ...state.server, ...(state.fault && { fault: state.fault }) };
    },
  };
  const send = async (_method: string, path: string) => {
    state.orders.push(path.replace(/^\/servers\/(.*)\/action$/, "reset $1"));
    state.onReset();
  };
  const api = { servers, nova: { send } } as unknown as Api;
  const evidence = memoryEvidence();
  const closed = new AbortController().signal;
  return {
    clock,
    state,
    servers: serversOf({ api, clock, evidence, closed, provider: "p", log: { warn() {} } as never }),
    evidence,
    api,
    answer: (id: string) => {
      answer.resolve(id);
      answer = Promise.withResolvers();
    },
  };
}

test("a server that one listing misses is not taken for gone", async () => {
  const { clock, state, servers } = nova();
  state.server = serverOf("BUILD");
  state.listed = false;
  let gone = false;
  const wait = servers.gone("s", "p", signal).then(() => {
    gone = true;
  });
  await clock.advance(10_000);
  expect(gone).toBe(false);
  expect(state.looks).toBeGreaterThan(0);
  expect(await servers.existing(tag, "s", signal)).toMatchObject({ id: "s" });
  state.server = undefined;
  await clock.advance(10_000);
  await wait;
});

test.each([
  ["few", 0],
  ["many", 300],
])(
  "DELETED is not the end, among %s: the quota is free when nova knows the server no more, or after a while",
  async (_, beside) => {
    for (const leaves of [true, false]) {
      const { clock, state, servers } = nova(beside);
      state.server = serverOf("ACTIVE");
      let gone = false;
      const wait = servers.gone("s", "p", signal, state.server).then(() => {
        gone = true;
      });
      await clock.advance(3_000);
      state.server = serverOf("DELETED");
      await clock.advance(60_000);
      expect(gone).toBe(false);
      if (leaves) state.server = undefined;
      await clock.advance(leaves ? 33_000 : 200_000);
      expect(gone).toBe(true);
      await wait;
    }
  },
);

test("a listing of all is enough to know that a server is away which had its host", async () => {
  const { clock, state, servers } = nova();
  state.server = serverOf("ACTIVE");
  const wait = servers.gone("s", "p", signal, state.server);
  state.server = undefined;
  await clock.advance(2_500);
  await wait;
  expect(state.looks).toBe(0);
});

test("a deletion that nova gave up with a report is an error", async () => {
  const { clock, state, servers } = nova();
  state.server = serverOf("ERROR", { fault: { message: "disk busy" } });
  const failure = servers.gone("s", "p", signal).catch((error) => error);
  await clock.advance(4_900);
  expect(await Promise.race([failure, "still waiting"])).toBe("still waiting");
  await clock.advance(5_000);
  expect(await failure).toMatchObject({ kind: "transient", message: expect.stringContaining("disk busy") });
  expect(state.orders).toEqual([]);
});

test.each([
  ["ERROR", 60_000],
  ["ACTIVE", 120_000],
])("a deletion of a server in %s that nova has forgotten is ordered anew, once", async (status, ms) => {
  for (const works of [true, false]) {
    const { clock, state, servers } = nova();
    state.server = serverOf(status, DELETING);
    state.onDelete = () => {
      state.server = works ? undefined : serverOf("ERROR", { ...DELETING, fault: { message: "disk busy" } });
    };
    const end = servers.gone("s", "p", signal).catch((error) => error);
    await clock.advance(ms - 100);
    expect(state.orders).toEqual([]);
    await clock.advance(5_000);
    expect(state.orders).toEqual(["reset s", "delete s"]);
    await clock.advance(70_000);
    expect(await end).toEqual(
      works ? undefined : expect.objectContaining({ message: "p: server s was not deleted: disk busy" }),
    );
    expect(state.orders).toHaveLength(2);
  }
});

test("without an administrator's rights a forgotten deletion is an error with its remedy; a server that goes meanwhile is gone", async () => {
  const call = { method: "POST", url: "/servers/s/action" } as const;
  for (const [code, expected] of [
    [403, { kind: "transient", message: expect.stringContaining("openstack server set --state error s") }],
    [404, undefined],
    [503, { status: 503 }],
  ] as const) {
    const { clock, state, servers } = nova();
    state.server = serverOf("ACTIVE", DELETING);
    state.onReset = () => {
      if (code === 404) state.server = undefined;
      throw new ApiError(callText(call, "compute"), { status: code, text: "" });
    };
    const end = servers.gone("s", "p", signal).catch((error) => error);
    await clock.advance(150_000);
    expect(state.orders).toContain("reset s");
    const reported = await end;
    if (expected === undefined) expect(reported).toBeUndefined();
    else expect(reported).toMatchObject(expected);
  }
});

test("a fault that the listing does not tell is asked for; without an answer the server is in ERROR all the same", async () => {
  const lost = new NoAnswer("compute: GET /servers/s got no answer: ECONNRESET");
  for (const [fault, expected] of [
    [{ code: 500, message: "No valid host was found. " }, { kind: "capacity" }],
    [lost, { kind: "transient", message: expect.stringContaining("went to ERROR") }],
  ] as const) {
    const { clock, state, servers } = nova();
    state.fault = fault;
    state.server = serverOf("ERROR");
    const failure = servers.up("s", "p", signal).catch((error) => error);
    await clock.advance(3_000);
    expect(await failure).toMatchObject(expected);
    expect(state.looks).toBe(1);
  }
});

test("a search for a server whose create was aborted waits for nova's answer, and finds it", async () => {
  const { state, servers, answer, evidence, api } = nova();
  const controller = new AbortController();
  const create = servers.create(tag, createCall({ api, evidence }, tag, {}), controller.signal);
  controller.abort(new Error("never mind"));
  await expect(create).rejects.toThrow("never mind");
  let found: Server | undefined | "nothing yet" = "nothing yet";
  const look = servers.existing(tag, null, signal).then((server) => {
    found = server;
  });
  await Promise.resolve();
  expect(found).toBe("nothing yet");
  state.server = serverOf("BUILD");
  answer("s");
  await look;
  expect(found).toMatchObject({ id: "s" });
  expect(evidence.tagOf("instance", "s")).toEqual(tag);
});

test("a stored id that is another node's is not touched, and a Python launcher's server is known by its old keys", async () => {
  const { state, servers } = nova();
  state.server = serverOf("ACTIVE", { metadata: machineMetadata({ ...tag, nodeId: "0000000002" }) });
  expect(await servers.existing(tag, "s", signal)).toBeUndefined();
  const older = { nodepool_node_id: tag.nodeId, nodepool_provider_name: tag.provider };
  state.server = serverOf("ACTIVE", { metadata: older });
  expect(await servers.existing(tag, { id: "s" }, signal)).toMatchObject({ id: "s" });
  expect(await servers.existing(tag, null, signal)).toBeUndefined();
});

test("a server's volumes are known as its node's when it is up, also when no address can be found for it then", async () => {
  const { clock, state, servers, evidence } = nova();
  state.server = serverOf("ACTIVE", { "os-extended-volumes:volumes_attached": [{ id: "v" }] });
  const lookups = { networks: () => Promise.reject(new Error("neutron is down")) };
  const parts = { servers, evidence, lookups, cloud: {} };
  const order = { tag, pool: { own: {} } };
  const { create } = machineSteps({ name: "p", launchTimeoutMs: 60_000 }, serverWork(parts as never));
  const steps = create(order as never, { signal, externalId: "s" });
  expect(await steps.next()).toMatchObject({ value: { step: "find" } });
  expect(await steps.next()).toMatchObject({ value: { step: "wait" } });
  const ended = expect(steps.next()).rejects.toThrow("neutron is down");
  await clock.advance(10_000);
  await ended;
  expect(evidence.tagOf("volume", "v")).toEqual(tag);
});

test("a server rests by nova's word for its task, and else by its status, which stays what it was meanwhile", async () => {
  const sent: unknown[] = [];
  const send = async (...[method, path, , { json }]: [string, string, unknown, { json: object }]) =>
    void sent.push([method, path, json]);
  const { suspend, resume, restOf } = suspendsOf({ api: { nova: { send } } as unknown as Api });
  await suspend("s", signal);
  await resume("s", signal);
  expect(sent).toEqual([
    ["POST", "/servers/s/action", { suspend: null }],
    ["POST", "/servers/s/action", { resume: null }],
  ]);
  const task = (task_state: string | null) => ({ "OS-EXT-STS:task_state": task_state });
  const seen = [
    serverOf("ACTIVE", task(null)),
    serverOf("ACTIVE", task("suspending")),
    serverOf("SUSPENDED", task(null)),
    serverOf("SUSPENDED", task("resuming")),
    serverOf("ERROR", task(null)),
  ];
  expect(seen.map(restOf)).toEqual([undefined, "suspending", "suspended", "resuming", undefined]);
});
