import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { CallRefused, connect } from "../src/index.ts";
import { json, problem, Server } from "./server.ts";

const NODE = { labels: ["small"] };

test("a call has its path, query, token and body, and gives what the server answers", async () => {
  const server = new Server(() => json({ id: "0000000007" }));
  const body = { why: "to look at it" };
  const row = await server.pass(server.client.call("hold_node", { path: { id: "0000000007" }, body }));
  expect(row.id).toBe("0000000007");
  const [sent] = server.sent;
  expect(sent).toMatchObject({
    method: "POST",
    path: "/v1/nodes/0000000007/hold",
    body: JSON.stringify(body),
  });
  expect(sent!.headers).toEqual({ authorization: "Bearer secret", "content-type": "application/json" });
});

test("a GET is repeated, not before Retry-After", async () => {
  const times: number[] = [];
  const server = new Server(() => {
    times.push(server.clock.monotonic());
    if (times.length === 1) return new TypeError("fetch failed", { cause: new Error("refused") });
    return times.length === 2 ? problem(503, "tree.lost", { "retry-after": "4" }) : json({ name: "ci" });
  });
  expect(await server.pass(server.client.call("who_am_i"))).toMatchObject({ name: "ci" });
  expect(times).toHaveLength(3);
  expect(times[2]! - times[1]!).toBeGreaterThanOrEqual(4_000);
});

test("a POST that has a key is repeated with the same, and each call has its own", async () => {
  let count = 0;
  const server = new Server(() => (++count === 1 ? new TypeError("cut off") : json({ id: "a" }, 201)));
  await server.pass(server.client.call("create_lease", { body: NODE }));
  await server.pass(server.client.call("create_lease", { body: NODE }));
  await server.pass(server.client.call("create_lease", { body: NODE }, { key: "mine" }));
  const keys = server.sent.map(({ headers }) => headers["idempotency-key"]);
  expect(keys[0]).toMatch(/^[0-9a-f-]{36}$/);
  expect(keys).toEqual([keys[0], keys[0], expect.not.stringMatching(keys[0]!), "mine"]);
});

test("what may not be repeated is sent once, unless it was refused for coming too fast", async () => {
  const server = new Server(() => problem(503, "tree.lost"));
  const path = { id: "0000000001" };
  await expect(server.pass(server.client.call("delete_node", { path }))).rejects.toThrow("tree.lost");
  expect(server.sent.filter(({ method }) => method === "DELETE")).toHaveLength(1);
  let count = 0;
  const fast = new Server(() =>
    ++count < 3 ? problem(429, "api.too_fast", { "retry-after": "1" }) : new Response(null, { status: 204 }),
  );
  expect(await fast.pass(fast.client.call("delete_node", { path }))).toBeUndefined();
  expect(count).toBe(3);
});

test("a refusal has the server's code, status and text", async () => {
  const server = new Server(() => problem(409, "operation.node_locked"));
  const body = { why: "x" };
  const error = await server
    .pass(server.client.call("hold_node", { path: { id: "0000000001" }, body }))
    .catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(CallRefused);
  expect(error).toMatchObject({
    code: "operation.node_locked",
    status: 409,
    message: "operation.node_locked: do this",
  });
});

test("an answer that is not from Nodeyard is reported as such", async () => {
  const proxy = new Server(() => new Response("<html>", { status: 403 }));
  await expect(proxy.pass(proxy.client.call("who_am_i"))).rejects.toMatchObject({
    code: "client.no_problem",
    status: 403,
  });
  const page = new Server(() => new Response("<html>"));
  await expect(page.pass(page.client.call("who_am_i"))).rejects.toMatchObject({ code: "client.bad_answer" });
  for (const address of ["", "yard:8005", "ftp://yard", "run/http.sock"])
    expect(() => connect(address)).toThrow("no address of a Nodeyard");
});

test("a call ends at its deadline, at its caller's signal, and after some tries", async () => {
  const silent = new Server(() => "never");
  await expect(silent.pass(silent.client.call("who_am_i", {}, { timeoutMs: 500 }))).rejects.toMatchObject({
    code: "client.timeout",
  });
  const controller = new AbortController();
  const call = silent.client.call("who_am_i", {}, { signal: controller.signal });
  controller.abort(new Error("enough"));
  await expect(silent.pass(call)).rejects.toThrow("enough");
  const gone = new Server(() => new TypeError("fetch failed", { cause: new Error("connect refused") }));
  await expect(gone.pass(gone.client.call("who_am_i"))).rejects.toMatchObject({
    code: "client.unreachable",
    message: expect.stringContaining("connect refused"),
  });
  expect(gone.sent).toHaveLength(6);
  // The server asks for more time than there is.
  const later = new Server(() => problem(503, "tree.lost", { "retry-after": "60" }));
  await expect(later.pass(later.client.call("who_am_i"))).rejects.toMatchObject({
    code: "tree.lost",
    retryAfter: 60,
  });
  expect(later.sent).toHaveLength(1);
});

test("a list is read page by page", async () => {
  const pages = [
    { items: [{ id: "1" }, { id: "2" }], next: "two" },
    { items: [{ id: "3" }], next: null },
  ];
  const server = new Server(() => json(pages.shift()));
  const ids: string[] = [];
  const read = async () => {
    for await (const { id } of server.client.list("list_nodes", { state: "ready,hold" })) ids.push(id);
  };
  await server.pass(read());
  expect(ids).toEqual(["1", "2", "3"]);
  expect(server.paths).toEqual([
    "GET /v1/nodes?limit=1000&state=ready%2Chold",
    "GET /v1/nodes?limit=1000&state=ready%2Chold&cursor=two",
  ]);
});

test("a Unix socket is called as a TCP port is", async () => {
  const folder = mkdtempSync(join(tmpdir(), "nodeyard-"));
  const path = join(folder, "http.sock");
  const server = createServer((request, response) => {
    if (request.method !== "POST") response.writeHead(404, { "content-type": "application/problem+json" });
    else response.writeHead(204);
    const text = JSON.stringify({ code: "api.not_found", detail: request.url });
    response.end(request.method === "POST" ? undefined : text);
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  try {
    const client = connect(path);
    expect(await client.call("pause_image", { path: { id: "debian" } })).toBeUndefined();
    const missing = client.call("get_nodes", { path: { id: "a/b" } });
    await expect(missing).rejects.toMatchObject({ status: 404, message: "/v1/nodes/a%2Fb" });
    const absent = connect(`${path}.absent`).call("pause_image", { path: { id: "debian" } });
    await expect(absent).rejects.toThrow(`${path}.absent does not answer (connect ENOENT`);
  } finally {
    server.close();
    rmSync(folder, { recursive: true });
  }
});
