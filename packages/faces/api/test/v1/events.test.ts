import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { changeNode, encodeNode, encodeRemark, newNode, paths, REMARKS, remarkPath } from "@nodeyard/model";
import { askForNodes, releaseLease, revokeToken } from "@nodeyard/operations";
import { systemClock } from "@nodeyard/runtime";
import { memoryLog } from "@nodeyard/telemetry";
import { ensurePath } from "@nodeyard/tree";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { until } from "../../../../pool/launcher/test/rig.ts";
import { HttpApi } from "../../src/index.ts";
import { type ApiRig, ask, startApi } from "../rig.ts";
import { EventClient } from "./event-client.ts";

let site: ApiRig;
/** Whoever opens it may ask as often as it takes. */
let socket: string;
const folder = mkdtempSync(join(tmpdir(), "nodeyard-events-"));
const tokens: Record<string, string> = {};
const open: EventClient[] = [];

beforeAll(async () => {
  site = await startApi();
  socket = await site.listen({ socket: join(folder, "http.sock") });
  await ensurePath(site.rig.tree, paths.nodes);
  tokens.operator = await site.token({ name: "operator", role: "operator" });
  tokens.blue = await site.token({ name: "blue", role: "user", labels: ["small"], tenants: ["blue"] });
});
afterEach(async () => {
  for (const client of open.splice(0)) await client.cut();
});
afterAll(async () => {
  await site[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

const bearer = (as: string) => ({ authorization: `Bearer ${tokens[as]}` });

async function follow(
  as = "operator",
  path?: string,
  address = site.url,
  headers: Readonly<Record<string, string>> = {},
): Promise<EventClient> {
  const client = new EventClient();
  open.push(client);
  await client.connect(address, path, { ...bearer(as), ...headers });
  await until("all is told", () => client.count("synced") > 0);
  return client;
}

/** A round of work: nodes and leases come and go. */
async function work(): Promise<void> {
  const { handles } = site;
  const leases = await Promise.all(
    [1, 2, 3].map(() => askForNodes(handles, { labels: ["small"], owner: "me", forMs: 60_000 })),
  );
  await until("all are granted", async () => {
    const { text } = await ask(socket, "/v1/leases?state=granted");
    return leases.every(({ id }) => text.includes(id));
  });
  for (const { id } of leases) await releaseLease(handles, id);
}

/** What the lists have, by `kind/id`. */
async function lists(): Promise<Map<string, unknown>> {
  const found = new Map<string, unknown>();
  for (const kind of ["node", "request", "lease", "image", "pool", "member", "standing"]) {
    const { text } = await ask(socket, `/v1/${kind}s?limit=1000`);
    for (const row of JSON.parse(text).items) found.set(`${kind}/${row.id ?? row.image}`, row);
  }
  return found;
}

/** The picture is that of the lists, sooner or later. */
async function expectTrue(client: EventClient): Promise<void> {
  await until("nothing goes on", () => site.rig.launcher.view.nodes.byId.size === 0);
  let wanted = new Map<string, unknown>();
  await until("the picture is true", async () => {
    wanted = await lists();
    return JSON.stringify([...client.picture].sort()) === JSON.stringify([...wanted].sort());
  }).catch(() => expect(new Map([...client.picture].sort())).toEqual(new Map([...wanted].sort())));
}

describe("a stream of events", () => {
  test("tells everything there is, then each change of it: the picture is that of the lists", async () => {
    const client = await follow();
    expect(client.count("gap")).toBe(0);
    await work();
    await expectTrue(client);
    // Changes are gathered for a moment, and the picture before the work is the same as the one after it.
    await until("the last node was removed", () => client.count("remove") >= 9);
    const states = client.reported
      .filter(({ event, data }) => event === "put" && data.kind === "node")
      .map(({ data }) => data.row!.state);
    for (const state of ["building", "ready", "in-use", "used", "deleting"]) expect(states).toContain(state);
  });

  test("a stream that is cut off continues where it was: no event is missed, and none is sent twice", async () => {
    const [whole, cut] = [await follow(), await follow()];
    const begun = [whole, cut].map(({ reported }) => reported.length);
    await work();
    await cut.cut();
    await work();
    await cut.connect(site.url, "/v1/events", bearer("operator"));
    await work();
    await expectTrue(whole);
    await expectTrue(cut);
    const changes = [whole, cut].map(({ reported }, at) => reported.slice(begun[at]).map(({ id }) => id));
    expect(changes[1]).toEqual(changes[0]);
    expect(cut.count("gap")).toBe(0);
  });

  test("is the same in gzip, for each of the clients that share its pieces", async () => {
    const plain = await follow();
    const begun = plain.reported.length;
    const gzip = { "accept-encoding": "gzip, deflate" };
    const packed = [await follow("operator", undefined, site.url, gzip)];
    packed.push(await follow("operator", undefined, site.url, gzip));
    const starts = packed.map(({ reported }) => reported.length);
    await work();
    await expectTrue(plain);
    for (const one of packed) await expectTrue(one);
    const wanted = plain.reported.slice(begun);
    expect(packed.map(({ reported }, at) => reported.slice(starts[at]))).toEqual([wanted, wanted]);
  });

  test("of one node says at once what its driver remarks on its machine, as the list of nodes does", async () => {
    const { tree } = site.rig;
    const { id } = await askForNodes(site.handles, { labels: ["small"], owner: "me", forMs: 60_000 });
    let node = "";
    await until("it is granted", async () => {
      const { text } = await ask(socket, `/v1/leases/${id}`);
      node = JSON.parse(text).nodes[0] ?? "";
      return JSON.parse(text).state === "granted";
    });
    const client = await follow("operator", `/v1/events?kinds=node&id=${node}`);
    const remarkSeen = () => client.picture.get(`node/${node}`)?.remark;
    expect(remarkSeen()).toBeNull();
    await ensurePath(tree, REMARKS);
    await tree.create(remarkPath(node), encodeRemark({ at: 0, text: "the cloud takes it back" }));
    await until("the client knows it", () => remarkSeen() !== null);
    const remark = { at: "1970-01-01T00:00:00.000Z", text: "the cloud takes it back" };
    expect(remarkSeen()).toEqual(remark);
    expect(JSON.parse((await ask(socket, `/v1/nodes/${node}`)).text)).toMatchObject({ remark });
    await releaseLease(site.handles, id);
  });

  test("of a server without a state folder begins empty after a restart, and says so", async () => {
    const { clock, log } = { clock: systemClock, log: memoryLog() };
    const { view } = site.rig.launcher;
    const start = async () => {
      const sources = {
        known: () => ({ view, handles: site.handles }),
        readiness: () => ({ ready: true, why: "" }),
        stuck: () => undefined,
        work: () => undefined,
        audit: () => undefined,
        providers: () => [],
        history: () => [],
        buildLog: async () => undefined,
        planConfig: async () => undefined,
        sliverMachines: async () => [],
        checkConfig: async () => [],
        metrics: () => Promise.reject(new Error("not asked for")),
      };
      const api = new HttpApi({ clock, log, sources });
      return { api, url: await api.listen({ host: "127.0.0.1", port: 0 }) };
    };
    const first = await start();
    const client = await follow("operator", undefined, first.url);
    await first.api.close();
    await client.ended;
    await work();
    const second = await start();
    await client.connect(second.url, "/v1/events", bearer("operator"));
    await until("it began anew", () => client.count("synced") === 2);
    expect(client.count("gap")).toBe(1);
    await expectTrue(client);
    await second.api.close();
  });

  test("leaves out the keys that are null where the client asks for that", async () => {
    const [whole, brief] = [await follow(), await follow("operator", "/v1/events?nulls=false")];
    const kept = (row: object) => Object.entries(row).filter(([, value]) => value !== null);
    const pool = [...whole.picture].find(([id]) => id.startsWith("pool/"))!;
    expect(Object.entries(brief.picture.get(pool[0])!)).toEqual(kept(pool[1] as object));
    await work();
    await expectTrue(whole);
    for (const client of [whole, brief])
      await until("the last node was removed", () => client.count("remove") >= 9);
    const nodes = brief.reported.filter(({ event, data }) => event === "put" && data.kind === "node");
    expect(nodes.length).toBeGreaterThan(0);
    for (const { data } of nodes) expect(Object.values(data.row!)).not.toContain(null);
    expect(whole.reported.some(({ data }) => data.row?.comment === null)).toBe(true);
  });

  test("has what the client asks for, and what leaves that is removed for it", async () => {
    const client = await follow("operator", "/v1/events?kinds=node&state=in-use,ready");
    await work();
    await until("all have gone", () => client.count("remove") >= 3);
    const states = client.reported.filter(({ event }) => event === "put").map(({ data }) => data.row!.state);
    expect(new Set(states)).toEqual(new Set(["ready", "in-use"]));
    expect(client.reported.every(({ data }) => data.kind === undefined || data.kind === "node")).toBe(true);
    expect(client.picture.size).toBe(0);
  });

  test.each(["kinds=node,nonsense", "nonsense=1"])("is refused for %s", async (query) => {
    const { status } = await ask(site.url, `/v1/events?${query}`, { headers: bearer("operator") });
    expect(status).toBe(400);
  });
});

describe("whose events", () => {
  test("a tenant's client gets events of its own objects, until they belong to another tenant", async () => {
    const { tree } = site.rig;
    const client = await follow("blue");
    const made = (tenantName: string) =>
      newNode(
        {
          type: ["small"],
          state: "hold",
          provider: "far",
          tenantName,
          allocatedTo: "200-1",
          comment: "secret",
        },
        1_700_000_000,
      );
    const create = async (tenant: string) =>
      (await tree.create(`${paths.nodes}/`, encodeNode(made(tenant)), { sequential: true })).path;
    const [blue, red] = [await create("blue"), await create("red")];
    await until("its own is told", () => client.picture.has(`node/${blue.slice(-10)}`));
    await tree.delete(red);
    await tree.set(blue, encodeNode(changeNode(made("blue"), { tenantName: "red" }, 1_700_000_001)));
    await until("it is gone", () => client.count("remove") > 0);
    expect(
      client.reported
        .filter(({ data }) => data.kind !== undefined)
        .map(({ event, data }) => [event, data.id]),
    ).toEqual([
      ["put", blue.slice(-10)],
      ["remove", blue.slice(-10)],
    ]);
    expect(JSON.stringify(client.reported)).not.toMatch(/"red"|secret/);
    await tree.delete(blue);
  });

  test("a revoked token gets no more events", async () => {
    tokens.gone = await site.token({ name: "gone", role: "viewer" });
    const client = await follow("gone");
    await revokeToken(site.handles, "gone", "me");
    await client.ended;
    const again = new EventClient();
    await again.connect(site.url, "/v1/events", bearer("gone"));
    expect(again.status).toBe(401);
    await again.cut();
  });
});
