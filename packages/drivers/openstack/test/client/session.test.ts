import type { HttpAnswer, HttpRequest } from "@nodeyard/driver";
import { type ApiCall, RateLimiter } from "@nodeyard/driver";
import { seededRandom, VirtualClock } from "@nodeyard/runtime";
import { expect, test } from "vitest";
import { z } from "zod";
import { Service, Session } from "../../src/client/index.ts";
import { resourceOf } from "../../src/client/service.ts";

type Answer = Partial<HttpAnswer> | "cut off" | "silence";

/** A cloud of one service that answers from a script, and a login that works. */
function cloud(
  script: (request: HttpRequest, count: number) => Answer,
  limit = { intervalMs: 0, waiting: 1_000 },
  login = token,
) {
  const clock = new VirtualClock();
  const requests: HttpRequest[] = [];
  let logins = 0;
  const send = async (request: HttpRequest): Promise<HttpAnswer> => {
    if (request.url.endsWith("/auth/tokens")) {
      logins++;
      return login(logins);
    }
    requests.push(request);
    const answer = script(request, requests.length);
    if (answer === "cut off") throw new Error("ECONNRESET");
    if (answer === "silence")
      return new Promise((_, reject) =>
        request.signal.addEventListener("abort", () => reject(request.signal.reason)),
      );
    return { status: 200, headers: {}, text: "{}", ...answer };
  };
  const credential = () => ({
    authUrl: "http://cloud",
    type: null,
    values: { token: "t", project_id: "p" },
  });
  const session = new Session({
    credential,
    limiter: new RateLimiter({ clock, ...limit }),
    send,
    clock,
    random: seededRandom(1),
  });
  const place = { region: null, interfaces: ["public"], overrides: {}, microversions: { compute: "2.79" } };
  const calls: ApiCall[] = [];
  const compute = new Service("compute", session, place, clock, (call) => calls.push(call));
  return { clock, session, compute, requests, calls, logins: () => logins };
}

function token(count: number): HttpAnswer {
  const endpoints = [{ interface: "public", region_id: "A", url: "http://nova/v2.1" }];
  const life = { issued_at: "2026-01-01T00:00:00Z", expires_at: "2026-01-01T01:00:00Z" };
  const text = JSON.stringify({ token: { ...life, catalog: [{ type: "compute", endpoints }] } });
  return { status: 201, headers: { "x-subject-token": `token-${count}` }, text };
}

const { signal } = new AbortController();
const get = (site: ReturnType<typeof cloud>) => site.compute.json(z.object({}), "GET", "/servers", signal);

async function driven<T>(clock: VirtualClock, work: Promise<T>): Promise<T> {
  let settled = false;
  const done = () => {
    settled = true;
  };
  work.then(done, done);
  for (let step = 0; !settled && step < 4_000; step++) await clock.advance(100);
  return work;
}

test("all share one login, and renew it before it ends", async () => {
  const site = cloud(() => ({}));
  await Promise.all([get(site), get(site), get(site)]);
  expect(site.logins()).toBe(1);
  expect(site.requests[0]?.headers).toMatchObject({
    "x-auth-token": "token-1",
    "openstack-api-version": "compute 2.79",
  });
  // Nova and glance go on with the token of a call that they have answered.
  await site.clock.advance(2_881_000);
  await get(site);
  expect(site.requests.at(-1)?.headers["x-auth-token"]).toBe("token-2");
});

test.each([200, 302])("a login that a page with status %i answers is tried again later", async (status) => {
  const page = () => ({ status, headers: {}, text: "<html>log in</html>" });
  const site = cloud(() => ({}), undefined, page);
  await expect(get(site)).rejects.toMatchObject({
    code: "cloud.odd_answer",
    message: expect.stringContaining(`the answer ${status} by cloud with a page`),
  });
});

test("a redirect is no success", async () => {
  const site = cloud(() => ({ status: 302 }));
  await expect(get(site)).rejects.toMatchObject({ code: "cloud.refused", status: 302 });
});

test("a token that is refused is replaced once; a credential that is refused is an error", async () => {
  const site = cloud(({ headers }) => (headers["x-auth-token"] === "token-2" ? {} : { status: 401 }));
  const first = cloud(() => ({ status: 401, text: '{"error": {"message": "no"}}' }));
  await driven(
    first.clock,
    get(first).catch(() => {}),
  );
  expect(first.logins()).toBe(2);
  await site.session.token(signal);
  await site.clock.advance(2_000);
  await driven(site.clock, get(site));
  expect(site.logins()).toBe(2);
  await first.clock.advance(2_000);
  await expect(driven(first.clock, get(first))).rejects.toMatchObject({
    code: "cloud.refused",
    status: 401,
  });
  // The token of the second login, which came for a refused one, is old enough to be replaced once more.
  expect(first.logins()).toBe(3);
});

test("the error names the request by the id that the service's log has, and the fault", async () => {
  const headers = { "x-openstack-request-id": "req-1" };
  const text = '{"forbidden": {"code": 403, "message": "Quota exceeded for instances"}}';
  const site = cloud(() => ({ status: 403, headers, text }));
  await expect(get(site)).rejects.toMatchObject({
    message: "compute: GET /v2.1/servers was answered 403: Quota exceeded for instances (request req-1)",
    requestId: "req-1",
  });
});

test("an overloaded service delays all calls, and is asked again at the time that it named", async () => {
  const site = cloud((_, count) => (count === 1 ? { status: 429, headers: { "retry-after": "2" } } : {}));
  await driven(site.clock, get(site));
  expect(site.clock.monotonic()).toBeGreaterThanOrEqual(2_000);
  expect(site.session.limiter.intervalMs).toBeGreaterThan(0);
  expect(site.requests).toHaveLength(2);
});

test("a read for which there is no place at the rate limit is refused at once, and not repeated", async () => {
  const site = cloud(() => ({}), { intervalMs: 60_000, waiting: 1 });
  await get(site);
  const second = get(site);
  await site.session.token(signal);
  await expect(driven(site.clock, get(site))).rejects.toMatchObject({ kind: "transient" });
  expect(site.requests).toHaveLength(1);
  await driven(site.clock, second);
});

test("no answer: a read is repeated, a create is not; each try has its deadline", async () => {
  const site = cloud((_, count) => (count === 1 ? "cut off" : count === 2 ? "silence" : {}));
  await driven(site.clock, get(site));
  expect(site.requests).toHaveLength(3);
  expect(site.clock.monotonic()).toBeGreaterThan(60_000);
  // Two tries without an answer and one with; what was waited for between them belongs to none.
  expect(site.calls).toMatchObject([
    { operation: "compute.GET.servers", result: "none", ms: 0 },
    { operation: "compute.GET.servers", result: "none", ms: 60_000, error: { code: "cloud.no_answer" } },
    { operation: "compute.GET.servers", result: "200", ms: 0 },
  ]);
  const other = cloud(() => "cut off");
  const create = other.compute.send("POST", "/servers", signal, { json: {} });
  await expect(driven(other.clock, create)).rejects.toMatchObject({ code: "cloud.no_answer" });
  expect(other.requests).toHaveLength(1);
});

test("two pages are followed; a page that repeats is an error", async () => {
  const list = (site: ReturnType<typeof cloud>) => site.compute.list("items", z.number(), "/servers", signal);
  const pages = [
    { items: [1, 2], next: "http://behind-a-proxy/v2.1/servers?marker=2" },
    { items: [3], next: "http://behind-a-proxy/v2.1/servers?marker=3" },
    { items: [] },
  ];
  const site = cloud((_, count) => ({ text: JSON.stringify(pages[count - 1]) }));
  expect(await list(site)).toEqual([1, 2, 3]);
  expect(site.requests[1]?.url).toBe("http://nova/v2.1/servers?marker=2");
  const loop = cloud(() => ({ text: JSON.stringify(pages[0]) }));
  await expect(list(loop)).rejects.toMatchObject({
    code: "cloud.odd_answer",
    message: expect.stringContaining("a page repeats"),
  });
});

test("an answer that the API does not promise is an error of the service, not a crash", async () => {
  const site = cloud(() => ({ text: "<html>" }));
  await expect(get(site)).rejects.toMatchObject({ code: "cloud.odd_answer" });
});

test.each([
  ["/servers/detail", "servers.detail"],
  ["/servers/0b1c", "server"],
  ["/servers/0b1c/action", "server.action"],
  ["/images/0b1c/file", "image.file"],
  ["/floatingips", "floatingips"],
  ["/quotas/p", "quota"],
  ["/os-availability-zone", "os-availability-zone"],
])("the path %s is told as %s", (path, resource) => {
  expect(resourceOf(path)).toBe(resource);
});

test("a page of HTML in the service's place is named with its host, its status and the call", async () => {
  const headers = { "content-type": "text/html" };
  const page = (status: number) => cloud(() => ({ status, headers, text: "<html>log in</html>" }));
  const failure = (status: number) => {
    const site = page(status);
    return driven(site.clock, get(site));
  };
  await expect(failure(200)).rejects.toThrow(
    /GET \/v2.1\/servers: the answer 200 by nova with a page of HTML that is not the cloud's/,
  );
  await expect(failure(403)).rejects.toThrow(
    /GET \/v2.1\/servers was answered 403 by nova with a page of HTML that is not the cloud's: log in/,
  );
});
