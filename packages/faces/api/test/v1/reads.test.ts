import {
  encodeImageBuild,
  encodeImageUpload,
  encodeNode,
  encodeRequest,
  newImageBuild,
  newImageUpload,
  newNode,
  newRequest,
  paths,
} from "@nodeyard/model";
import type { Story } from "@nodeyard/operations";
import { VirtualClock } from "@nodeyard/runtime";
import { ensurePath } from "@nodeyard/tree";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { until } from "../../../../pool/launcher/test/rig.ts";
import { routesOf } from "../../src/v1/collection.ts";
import { shownTo } from "../../src/v1/misc.ts";
import { BY_SOCKET, type Principal, principalOf } from "../../src/v1/principal.ts";
import { RateLimit } from "../../src/v1/rate.ts";
import { ROUTES } from "../../src/v1/routes.ts";
import { type ApiRig, ask, startApi } from "../rig.ts";

interface Page {
  readonly items: readonly Readonly<Record<string, unknown>>[];
  readonly next: string | null;
}

let site: ApiRig;
const tokens: Record<string, string> = {};
/** Nodes of nobody's pool, which the launcher leaves alone: they are held. */
const ids: string[] = [];

async function makeNode(fields: object): Promise<string> {
  const { tree } = site.rig;
  const held = { state: "hold", provider: "elsewhere", pool: "main", ...fields } as const;
  const data = encodeNode(newNode({ type: ["arm"], ...held } as never, 1_700_000_000));
  const { path } = await tree.create(`${paths.nodes}/`, data, { sequential: true });
  return path.slice(-10);
}

beforeAll(async () => {
  site = await startApi();
  for (const root of [paths.nodes, paths.requests]) await ensurePath(site.rig.tree, root);
  for (let at = 0; at < 25; at++)
    ids.push(
      await makeNode({
        hostname: `host-${String((at * 7) % 25).padStart(2, "0")}`,
        tenantName: at % 2 === 0 ? "blue" : "red",
        allocatedTo: `200-${String(at).padStart(10, "0")}`,
        comment: `secret of ${at}`,
        userData: { password: `pass-${at}` },
      }),
    );
  const asked = (tenantName: string) =>
    encodeRequest(
      newRequest({ nodeTypes: ["nowhere"], requestor: `${tenantName}-zuul`, tenantName }, 1_700_000_000),
    );
  for (const tenant of ["blue", "red"])
    await site.rig.tree.create(`${paths.requests}/200-`, asked(tenant), { sequential: true });
  tokens.viewer = await site.token({ name: "viewer", role: "viewer" });
  tokens.operator = await site.token({ name: "operator", role: "operator" });
  tokens.blue = await site.token({ name: "blue", role: "user", labels: ["arm"], tenants: ["blue"] });
  tokens.blueViewer = await site.token({ name: "blue-viewer", role: "viewer", tenants: ["blue"] });
  await until("all is seen", async () => (await get<Page>("/v1/nodes?limit=1000")).items.length === 25);
});
afterAll(() => site[Symbol.asyncDispose]());

const call = (path: string, as = "operator", headers = {}) =>
  ask(site.url, path, { headers: { authorization: `Bearer ${tokens[as]}`, ...headers } });

async function get<T>(path: string, as?: string): Promise<T> {
  const { status, text } = await call(path, as);
  expect(status, `${path}: ${text}`).toBe(200);
  return JSON.parse(text) as T;
}

/** Every page of a list; `between` is called after each. */
async function pages(path: string, between = async () => {}): Promise<readonly string[]> {
  const found: string[] = [];
  for (let cursor: string | null = ""; cursor !== null; ) {
    const { items, next }: Page = await get(`${path}${cursor === "" ? "" : `&cursor=${cursor}`}`);
    found.push(...items.map(({ id }) => String(id)));
    await between();
    cursor = next;
  }
  return found;
}

describe("lists", () => {
  test("are sorted by id, and come in pages that neither repeat nor leave out", async () => {
    expect(await pages("/v1/nodes?limit=10")).toEqual(ids);
    expect(await pages("/v1/nodes?limit=7&sort=-id")).toEqual([...ids].reverse());
    const byHost = await pages("/v1/nodes?limit=4&sort=hostname");
    expect([...byHost].sort()).toEqual(ids);
    const names = (await get<Page>("/v1/nodes?limit=1000&sort=hostname&fields=hostname")).items;
    expect(names.map(({ hostname }) => hostname)).toEqual(names.map(({ hostname }) => hostname).sort());
  });

  test("keep their place when a row that was on an earlier page goes", async () => {
    const gone = [...ids];
    const extra = await makeNode({ hostname: "aaa" });
    await until("it is seen", async () => (await call(`/v1/nodes/${extra}`)).status === 200);
    let first = true;
    const found = await pages("/v1/nodes?limit=10&sort=hostname", async () => {
      if (!first) return;
      first = false;
      await site.rig.tree.delete(paths.node(extra));
      await until("it is gone", async () => (await call(`/v1/nodes/${extra}`)).status === 404);
    });
    expect(found.filter((id) => id !== extra).sort()).toEqual(gone);
  });

  test("choose rows by value and columns by name", async () => {
    const { items } = await get<Page>(`/v1/nodes?state=ready,hold&id=${ids[3]},${ids[4]}&fields=id,tenant`);
    expect(items).toEqual([
      { id: ids[3], tenant: "red" },
      { id: ids[4], tenant: "blue" },
    ]);
    expect((await get<Page>("/v1/nodes?label=large")).items).toEqual([]);
    expect((await get<Page>("/v1/requests?labels=nowhere&tenant=red")).items).toMatchObject([
      { requestor: "red-zuul" },
    ]);
    expect((await get<Page>("/v1/labels")).items.map(({ label }) => label)).toEqual(["large", "small"]);
    expect((await get<Page>("/v1/pools")).items).toMatchObject([{ provider: "cloud", pool: "main" }]);
    expect((await get<Page>("/v1/providers")).items).toMatchObject([
      { provider: "cloud", launchers: ["host"] },
      { provider: "elsewhere", nodes: { hold: 25 } },
    ]);
    expect((await get<Page>("/v1/members")).items).toMatchObject([{ kind: "launcher", version: "0.0.0" }]);
  });

  test.each([
    ["/v1/nodes?limit=0", "query.limit"],
    ["/v1/nodes?limit=1001", 'query.limit: is "1001", but must be at most 1000'],
    ["/v1/nodes?sort=nonsense", "query.sort"],
    ["/v1/nodes?nonsense=1", "nonsense"],
    ["/v1/nodes?state=a&state=b", "query.state"],
    ["/v1/nodes?state=hold,redy", 'state: there is no "redy" here; did you mean ready? known: '],
    ["/v1/nodes?provider=elsewere", 'provider: there is no "elsewere" here; did you mean elsewhere? known: '],
    ["/v1/nodes?label=amr", 'label: there is no "amr" here; did you mean arm? known: '],
    ["/v1/requests?labels=nowehre", "did you mean nowhere?"],
    ["/v1/builds?image=debain", 'image: there is no "debain" here; known: none'],
    ["/v1/standings?kind=hots", "did you mean host?"],
    ["/v1/nodes?cursor=nonsense", "cursor"],
    ["/v1/nodes?fields=id,nonsense", "nonsense"],
  ])("refuse %s, and name it", async (path, named) => {
    const { status, headers, text } = await call(path);
    expect([status, headers["content-type"]]).toEqual([400, expect.stringContaining("problem+json")]);
    expect(JSON.parse(text)).toMatchObject({ status: 400, detail: expect.stringContaining(named) });
  });

  test("that have not changed are not sent again", async () => {
    const first = await call("/v1/nodes");
    const etag = first.headers.etag!;
    const again = await call("/v1/nodes", "operator", { "if-none-match": `"other", ${etag}` });
    expect([again.status, again.text, again.headers.etag]).toEqual([304, "", etag]);
    expect((await call("/v1/nodes?limit=3", "operator", { "if-none-match": etag })).status).toBe(200);
  });
});

describe("what belongs to others", () => {
  const SECRETS = ["secret of", "pass-"];

  test("comments of jobs and remarks of drivers are shown to operators only", async () => {
    for (const path of ["/v1/nodes", `/v1/nodes/${ids[0]}`]) {
      const [all, some] = [(await call(path)).text, (await call(path, "viewer")).text];
      for (const secret of SECRETS) {
        expect(all).toContain(secret);
        expect(some).not.toContain(secret);
      }
      expect(some).toContain('"comment":"redacted"');
    }
  });

  test("explain hides the same fields as the lists", async () => {
    const path = `/v1/explain/node/${ids[0]}`;
    expect((await call(path)).text).toContain("secret of 0");
    for (const as of ["viewer", "blue"]) {
      const { status, text } = await call(path, as);
      expect([as, status]).toEqual([as, 200]);
      expect(text).not.toContain("secret of");
    }
    const event = { at: 1, event: "node.console", node: ids[0]!, by: "host", request: null };
    const events = [
      { ...event, facts: { lines: "root:hidden", cut: 0 } },
      { ...event, request: "200-0000000009", facts: { lines: null } },
    ];
    const story = { kind: "node", id: ids[0], about: {}, waits_for: null, steps: [], history: { events } };
    const reported = (as: Principal) => JSON.stringify(shownTo(story as unknown as Story, as));
    const tenants = new Set(["blue"]);
    expect(reported(principalOf(BY_SOCKET))).toContain("root:hidden");
    expect(reported({ ...principalOf(BY_SOCKET), role: "viewer" })).not.toContain("root:hidden");
    expect(reported({ ...principalOf(BY_SOCKET), role: "viewer" })).toContain("200-0000000009");
    expect(reported({ ...principalOf(BY_SOCKET), role: "user", tenants })).not.toContain("200-0000000009");
  });

  test.each(["blue", "blueViewer"])("a tenant's client sees nothing of another: %s", async (as) => {
    const mine = await get<Page>("/v1/nodes?limit=1000", as);
    expect(mine.items.map(({ id }) => id)).toEqual(ids.filter((_, at) => at % 2 === 0));
    expect((await get<Page>("/v1/nodes?tenant=red", as)).items).toEqual([]);
    expect((await call(`/v1/nodes/${ids[1]}`, as)).status).toBe(404);
    expect((await call(`/v1/explain/node/${ids[1]}`, as)).status).toBe(404);
    const requests = await get<Page>("/v1/requests", as);
    expect(requests.items.map(({ requestor }) => requestor)).toEqual(["blue-zuul"]);
    const lists = ROUTES.filter(({ id, path }) => id.startsWith("list_") && !path.includes("{"));
    for (const { path } of lists) {
      const { status, text } = await call(path, as);
      expect([200, 403], path).toContain(status);
      expect(text, path).not.toMatch(/"red"|red-zuul|elsewhere\//);
    }
  });

  test("a node that does not exist and a node of another tenant get the same answer", async () => {
    const [other, none] = await Promise.all([
      call(`/v1/nodes/${ids[1]}`, "blue"),
      call("/v1/nodes/0000009999", "blue"),
    ]);
    expect(other.text.replace(ids[1]!, "0000009999")).toBe(none.text);
  });
});

test("a record that cannot be read is named, and why, and is no internal error", async () => {
  const { tree } = site.rig;
  const { path } = await tree.create(`${paths.requests}/200-`, Buffer.from("{"), { sequential: true });
  const id = path.slice(path.lastIndexOf("/") + 1);
  const answer = await call(`/v1/explain/request/${id}`);
  expect(answer.status).toBe(409);
  expect(JSON.parse(answer.text)).toMatchObject({
    code: "record.not_json",
    detail: expect.stringContaining(id),
  });
  // It says of no tenant, so that only callers who see all tenants learn of it.
  expect((await call(`/v1/explain/request/${id}`, "blue")).status).toBe(404);
  await tree.delete(path);
});

test("explain says what the command line says", async () => {
  const [{ id }] = (await get<{ items: [{ id: string }] }>("/v1/requests?tenant=blue")).items;
  const story = await get<{ kind: string; id: string }>(`/v1/explain/request/${id}`);
  expect(story).toMatchObject({
    v: 1,
    kind: "request",
    id,
    state: expect.any(String),
    next: expect.any(String),
  });
});

test("the history of a day is of everything, a label or a provider, and only for callers that see all tenants", async () => {
  const [ready, used] = [{ ready: 2 }, { "in-use": 1 }];
  const labels = { arm: { ...ready, waiting: 4 } };
  site.state.history = [
    { at: 1_700_000_100_000, nodes: { ...ready, ...used }, waiting: 5, labels, providers: { lab: used } },
  ];
  const at = "2023-11-14T22:15:00.000Z";
  const points = async (query = "", as = "viewer") =>
    (await get<{ points: readonly object[] }>(`/v1/history${query}`, as)).points;
  expect(await points()).toEqual([{ at, nodes: { ready: 2, "in-use": 1 }, waiting: 5 }]);
  expect(await points("?label=arm")).toEqual([{ at, nodes: ready, waiting: 4 }]);
  expect(await points("?provider=lab")).toEqual([{ at, nodes: used, waiting: null }]);
  expect(await points("?provider=nowhere")).toEqual([{ at, nodes: {}, waiting: null }]);
  expect(await points("", "blueViewer")).toEqual([]);
  expect((await call("/v1/history?label=arm&provider=lab")).status).toBe(400);
});

test("the document is OpenAPI 3.1 and has every route", async () => {
  const document = await get<{ openapi: string; paths: Record<string, object> }>("/v1/openapi.json");
  expect(document.openapi).toBe("3.1.0");
  const listed = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.keys(item).map((method) => `${method.toUpperCase()} ${path}`),
  );
  expect(listed.sort()).toEqual(ROUTES.map(({ method, path }) => `${method} ${path}`).sort());
});

test("a caller that calls too often waits for its next call, and others do not", async () => {
  const clock = new VirtualClock();
  const rates = new RateLimit(clock);
  const calls = (client: string) => {
    let allowed = 0;
    while (rates.take(client) === 0) allowed++;
    return allowed;
  };
  expect(calls("eager")).toBe(200);
  expect(rates.take("eager")).toBeCloseTo(10);
  expect(calls("other")).toBe(200);
  await clock.advance(500);
  expect(calls("eager")).toBe(50);
  rates.charge("eager", 100);
  await clock.advance(1_500);
  expect(calls("eager")).toBe(50);
});

test("a long list yields to other work, costs more than one call, and is complete", async () => {
  const rows = Array.from({ length: 5_000 }, (_, at) => ({ id: `${at}` }));
  const list = { name: "things", about: "things", roles: [], row: z.object({ id: z.string() }), key: "id" };
  const [route] = routesOf({ ...list, filters: [], rows: () => rows });
  let [pauses, charged] = [0, 0];
  const clock = {
    setTimer(_: number, fn: () => void) {
      pauses++;
      queueMicrotask(fn);
      return { cancel() {} };
    },
  };
  const charge = (calls: number) => {
    charged += calls;
  };
  const page = await route!.handle(
    { parts: { clock }, charge, query: { limit: 5_000 } } as never,
    {} as never,
    {} as never,
  );
  expect([(page as Page).items.length, pauses, charged]).toEqual([5_000, 25, 10]);
});

test.each([
  ["a name that is too long", `/v1/nodes/${"x".repeat(2_000)}`],
  ["an escape that is none", "/v1/nodes/%zz"],
])("%s in a path is a problem like any other", async (_, path) => {
  const { status, headers, text } = await call(path);
  expect([status, headers["content-type"], JSON.parse(text).code]).toEqual([
    400,
    expect.stringContaining("problem+json"),
    "api.bad_path",
  ]);
});

test("a request that is too long to be read is a problem like any other", async () => {
  const { status, headers, text } = await call(`/v1/nodes?state=${"x".repeat(20_000)}`);
  expect([status, headers["content-type"], JSON.parse(text).status]).toEqual([
    431,
    "application/problem+json",
    431,
  ]);
});

test("a build and an upload have how far they are; a line of a log is for operators", async () => {
  const { tree } = site.rig;
  const [image, build, provider] = ["noble", "0123456789abcdef0123456789abcdef", "cloud"];
  await ensurePath(tree, `${paths.imageUploads(image, build, provider)}`);
  const made = newImageBuild(build, { builder: null, builderId: null, formats: ["raw"] }, 1_700_000_000);
  await tree.set(paths.imageBuild(image, build), encodeImageBuild(made));
  const upload = newImageUpload({ username: "zuul", pythonPath: null, shellType: null }, 1_700_000_000);
  const path = `${paths.imageUploads(image, build, provider)}/`;
  await tree.create(path, encodeImageUpload(upload), { sequential: true });
  const work = { image, build, elapsedMs: 10_000, bytes: 5, bytesPerSecond: 0.5, etaMs: null, total: null };
  site.state.work = [
    { ...work, kind: "build", provider: null, phase: "Installing secrets" },
    { ...work, kind: "upload", provider, phase: "send" },
  ];
  await until("both are seen", async () => (await get<Page>("/v1/uploads")).items.length > 0);
  const phases = async (as: string) =>
    Promise.all(
      ["builds", "uploads"].map(async (list) => (await get<Page>(`/v1/${list}?image=${image}`, as)).items[0]),
    );
  expect(await phases("operator")).toMatchObject([
    { state: "building", progress: { phase: "Installing secrets", bytes: 5 } },
    { state: "uploading", provider, progress: { phase: "send", elapsed_seconds: 10 } },
  ]);
  expect(await phases("viewer")).toMatchObject([
    { progress: { phase: null } },
    { progress: { phase: "send" } },
  ]);
  site.state.work = undefined;
  expect(await phases("operator")).toMatchObject([{ progress: null }, { progress: null }]);
});
