import { askForNodes } from "@nodeyard/operations";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { until } from "../../../../pool/launcher/test/rig.ts";
import { type ApiRig, ask, startApi } from "../rig.ts";

interface LeaseBody {
  readonly id: string;
  readonly state: string;
  readonly nodes: readonly string[];
  readonly request: string | null;
  readonly tenant: string | null;
}

let site: ApiRig;
const tokens: Record<string, string> = {};
beforeAll(async () => {
  site = await startApi();
  tokens.blue = await site.token({ name: "blue", role: "user", labels: ["small"], tenants: ["blue"] });
  tokens.red = await site.token({ name: "red", role: "user", labels: ["*"], tenants: ["red", "green"] });
  tokens.any = await site.token({ name: "any", role: "user" });
  tokens.watch = await site.token({ name: "watch", role: "viewer", tenants: ["red"] });
  tokens.operator = await site.token({ name: "operator", role: "operator" });
});
afterAll(() => site[Symbol.asyncDispose]());

async function call(as: string, method: string, path: string, body?: object, headers = {}, to = site.url) {
  const { status, text } = await ask(to, path, {
    method,
    headers: {
      authorization: `Bearer ${tokens[as]}`,
      ...(body && { "content-type": "application/json" }),
      ...headers,
    },
    ...(body && { body: JSON.stringify(body) }),
  });
  return { status, json: text === "" ? undefined : JSON.parse(text) };
}

const granted = (as: string, id: string) =>
  until<LeaseBody>(`lease ${id} is granted`, async () => {
    const { json } = await call(as, "GET", `/v1/leases/${id}`);
    return json.state === "granted" && json;
  });

describe("leases by REST", () => {
  test("the console of a node is for the holder of its lease, and for operators", async () => {
    const { json } = await call("blue", "POST", "/v1/leases", { labels: ["small"] });
    const [node] = (await granted("blue", json.id)).nodes;
    const end = { cut: false, problem: null, lines: expect.arrayContaining([expect.stringMatching(/\w/)]) };
    for (const as of ["blue", "operator"])
      expect(await call(as, "GET", `/v1/nodes/${node}/console`)).toEqual({ status: 200, json: end });
    // It sees the node, but the lease is another's.
    expect((await call("any", "GET", `/v1/nodes/${node}/console`)).status).toBe(403);
    expect((await call("red", "GET", `/v1/nodes/${node}/console`)).status).toBe(404);
    await call("blue", "POST", `/v1/leases/${json.id}/release`, {});
  });

  test("the job of another tenant is not explained, and nothing says that there is one", async () => {
    const job = { system: "gitlab", id: "4711", name: "unit" };
    const { json: lease } = await call("blue", "POST", "/v1/leases", { labels: ["small"], job });
    await granted("blue", lease.id);
    const path = "/v1/explain/job/4711";
    expect((await call("blue", "GET", path)).json).toMatchObject({ kind: "lease", id: lease.id });
    const unknown = await call("red", "GET", "/v1/explain/job/4712");
    for (const as of ["red", "watch"]) {
      const { status, json } = await call(as, "GET", path);
      expect([status, json.detail]).toEqual([404, unknown.json.detail.replace("4712", "4711")]);
    }
    // Another CI may give a job of its own the same number: each tenant is told of its own.
    const { json: own } = await call("red", "POST", "/v1/leases", { labels: ["small"], tenant: "red", job });
    await granted("red", own.id);
    for (const as of ["red", "watch"]) expect((await call(as, "GET", path)).json.id).toBe(own.id);
    expect((await call("blue", "GET", path)).json.id).toBe(lease.id);
    await call("red", "POST", `/v1/leases/${own.id}/release`, {});
    await call("blue", "POST", `/v1/leases/${lease.id}/release`, {});
  });

  test("data is replaced only where it is what its client knows, if the client says so", async () => {
    const { json } = await call("blue", "POST", "/v1/leases", { labels: ["small"], data: "a" });
    const beat = (body: object) => call("blue", "POST", `/v1/leases/${json.id}/heartbeat`, body);
    const all = await Promise.all(["b", "c", "d"].map((data) => beat({ data, data_was: "a" })));
    expect(all.map(({ status }) => status).sort()).toEqual([200, 409, 409]);
    const won = all.find(({ status }) => status === 200)!.json.data;
    expect(all.find(({ status }) => status === 409)!.json.code).toBe("lease.data_changed");
    expect((await beat({})).json.data).toBe(won);
    await call("blue", "POST", `/v1/leases/${json.id}/release`, {});
  });

  test("from the request to the verdict", async () => {
    const { status, json } = await call("blue", "POST", "/v1/leases", {
      labels: ["small", "small"],
      for_seconds: 600,
      heartbeat_seconds: 60,
    });
    expect([status, json]).toEqual([
      201,
      expect.objectContaining({
        state: "waiting",
        owner: "token:blue",
        tenant: "blue",
        heartbeat_seconds: 60,
      }),
    ]);
    const lease = await granted("blue", json.id);
    expect(Date.parse(json.until) - Date.parse(json.created)).toBe(600_000);
    const nodes = await call("blue", "GET", `/v1/leases/${lease.id}/nodes`);
    expect(nodes.json.items.map(({ id }: { id: string }) => id)).toEqual(lease.nodes);
    expect(nodes.json.items[0]).toMatchObject({ label: ["small"], username: "tester" });
    expect((await call("blue", "GET", "/v1/nodes?state=in-use")).json.items).toHaveLength(2);
    const beat = await call("blue", "POST", `/v1/leases/${lease.id}/heartbeat`);
    expect([beat.status, Date.parse(beat.json.expires) > Date.parse(json.expires)]).toEqual([200, true]);
    const longer = await call("blue", "POST", `/v1/leases/${lease.id}/extend`, { for_seconds: 6_000 });
    expect(Date.parse(longer.json.until)).toBeGreaterThan(Date.parse(json.until));
    const verdict = { verdict: "dirty", why: "disk full" };
    expect((await call("blue", "POST", `/v1/leases/${lease.id}/release`, verdict)).status).toBe(204);
    await until(
      "it is over",
      async () => (await call("blue", "GET", `/v1/leases/${lease.id}`)).status === 404,
    );
    await until("the audit has it", () =>
      site.audit.some(({ action, why }) => action === "release_lease" && why === "disk full"),
    );
  });

  test("a repeated key makes one request, also by another listener", async () => {
    const key = { "idempotency-key": "build-17" };
    const body = { labels: ["small"] };
    const second = await site.listen({ host: "127.0.0.1", port: 0 });
    const answers = await Promise.all(
      [site.url, second, site.url].map((to) => call("blue", "POST", "/v1/leases", body, key, to)),
    );
    const ids = new Set(answers.map(({ json }) => json.id));
    expect([answers.map(({ status }) => status), ids.size]).toEqual([[201, 201, 201], 1]);
    const [id] = ids;
    const { nodes } = await granted("blue", id);
    expect((await call("blue", "POST", "/v1/leases", body, key)).json).toMatchObject({ id, nodes });
    // Of another client it is another key.
    const others = await call("any", "POST", "/v1/leases", body, key);
    expect(others.json.id).not.toBe(id);
    const refused = await call("blue", "POST", "/v1/leases", { labels: ["small", "small"] }, key);
    expect([refused.status, refused.json.code]).toEqual([409, "lease.key_used"]);
    for (const one of [id, others.json.id])
      expect((await call("operator", "POST", `/v1/leases/${one}/release`, {})).status).toBe(204);
    await site.api.leave(second);
  });
});

test("a lease is there as soon as it is answered, also one that no pool can serve", async () => {
  for (let at = 0; at < 20; at++) {
    const { json } = await call("operator", "POST", "/v1/leases", {
      labels: ["\u0013j"],
      heartbeat_seconds: 15,
    });
    const { status } = await call("operator", "GET", `/v1/leases/${json.id}`);
    const extended = await call("operator", "POST", `/v1/leases/${json.id}/extend`, { for_seconds: 858 });
    expect([status, [200, 409].includes(extended.status)]).toEqual([200, true]);
  }
});

describe("whose lease it is", () => {
  test("a user may request its labels for its tenants alone", async () => {
    const create = (as: string, body: object) => call(as, "POST", "/v1/leases", body);
    expect((await create("blue", { labels: ["small", "large"] })).status).toBe(403);
    expect((await create("blue", { labels: ["small"], tenant: "red" })).status).toBe(403);
    // Of two tenants none is meant by itself.
    expect((await create("red", { labels: ["small"] })).status).toBe(403);
    const { json } = await create("red", { labels: ["large"], tenant: "green" });
    expect(json.tenant).toBe("green");
    await call("red", "POST", `/v1/leases/${json.id}/release`, {});
  });

  test("another tenant's is not seen, and not changed", async () => {
    const { json } = await call("blue", "POST", "/v1/leases", { labels: ["small"] });
    const lease = await granted("blue", json.id);
    const paths = ["", "/nodes"].map((part) => ["GET", `/v1/leases/${lease.id}${part}`] as const);
    const changes = ["heartbeat", "extend", "release"].map(
      (part) => ["POST", `/v1/leases/${lease.id}/${part}`] as const,
    );
    for (const [method, path] of [...paths, ...changes])
      expect(
        (await call("red", method, path, method === "GET" ? undefined : { for_seconds: 5 })).status,
        path,
      ).not.toBe(200);
    expect((await call("red", "GET", "/v1/leases")).json.items).toEqual([]);
    expect((await call("red", "GET", `/v1/nodes/${lease.nodes[0]}`)).status).toBe(404);
    expect((await call("red", "GET", `/v1/explain/lease/${lease.id}`)).status).toBe(404);
    // Who is limited to no tenant sees it, and still does not change what others made.
    expect((await call("any", "GET", `/v1/leases/${lease.id}`)).status).toBe(200);
    expect((await call("any", "POST", `/v1/leases/${lease.id}/release`, {})).status).toBe(403);
    expect((await granted("blue", lease.id)).state).toBe("granted");
    await call("operator", "POST", `/v1/leases/${lease.id}/release`, {});
  });

  test("those of the command line are for operators", async () => {
    const { id } = await askForNodes(site.handles, { labels: ["small"], owner: "me@host", forMs: 60_000 });
    expect((await call("blue", "GET", `/v1/leases/${id}`)).status).toBe(404);
    expect((await call("any", "POST", `/v1/leases/${id}/release`, {})).status).toBe(403);
    expect((await call("operator", "POST", `/v1/leases/${id}/release`, {})).status).toBe(204);
  });
});

test("a node is held with a reason, released, and deleted", async () => {
  const make = await call("operator", "POST", "/v1/leases", { labels: ["small"] });
  const { nodes } = await granted("operator", make.json.id);
  const [id] = nodes;
  const hold = (body: object) => call("operator", "POST", `/v1/nodes/${id}/hold`, body);
  expect((await hold({})).status).toBe(400);
  await call("operator", "POST", `/v1/leases/${make.json.id}/release`, {});
  await until("it is gone", async () => (await call("operator", "GET", `/v1/nodes/${id}`)).status === 404);
  expect((await hold({ why: "too late" })).json).toMatchObject({ status: 404, code: "operation.no_node" });
  expect((await call("operator", "DELETE", `/v1/nodes/${id}`)).status).toBe(404);
});

describe("bodies that are none of ours", () => {
  test.each([
    ["no JSON", 400, { "content-type": "application/json" }, "{"],
    ["another type", 415, { "content-type": "text/plain" }, "labels=small"],
    [
      "too long",
      413,
      { "content-type": "application/json" },
      JSON.stringify({ labels: ["x".repeat(70_000)] }),
    ],
    ["a key that is none of ours", 400, { "content-type": "application/json" }, '{"labels":["small"],"x":1}'],
    ["no label", 400, { "content-type": "application/json" }, '{"labels":[]}'],
  ])("%s: %i", async (_, status, headers, body) => {
    const authorization = `Bearer ${tokens.blue}`;
    const answer = await ask(site.url, "/v1/leases", {
      method: "POST",
      headers: { ...headers, authorization },
      body,
    });
    expect([answer.status, answer.headers["content-type"]]).toEqual([
      status,
      expect.stringContaining("problem+json"),
    ]);
  });
});
