import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { tokenPath } from "@nodeyard/model";
import { checkToken, createToken, revokeToken } from "@nodeyard/operations";
import { systemClock } from "@nodeyard/runtime";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { until } from "../../../../pool/launcher/test/rig.ts";
import { ROUTES } from "../../src/v1/routes.ts";
import { type ApiRig, ask, logIn, startApi } from "../rig.ts";

/** Who may call what: v viewer, u user, o operator, a admin. Written here once more, so that nobody widens a right by accident. */
const RIGHTS: Readonly<Record<string, string>> = {
  "GET /v1/openapi.json": "vuoa",
  "POST /v1/session": "vuoa",
  "GET /v1/session": "vuoa",
  "DELETE /v1/session": "vuoa",
  "POST /v1/session/tickets": "oa",
  "GET /v1/me": "vuoa",
  "GET /v1/explain/{kind}/{id}": "vuoa",
  "POST /v1/config/plan": "oa",
  "GET /v1/history": "voa",
  "GET /v1/builds/{id}/log": "oa",
  "GET /v1/image-status": "oa",
  "GET /v1/image-data": "oa",
  "POST /v1/image-data": "oa",
  "GET /v1/providers/{id}/records": "oa",
  "POST /v1/providers/{id}/erase": "oa",
  "GET /v1/cloud-leaks": "oa",
  "GET /v1/cloud-images": "oa",
  "POST /v1/nodes/{id}/retire": "oa",
  "DELETE /v1/images/{image}/builds/{build}": "oa",
  "DELETE /v1/images/{image}/builds/{build}/uploads/{provider}/{upload}": "oa",
  "GET /v1/sliver-machines": "voa",
  "POST /v1/config/check": "oa",
  "GET /v1/events": "vuoa",
  "GET /v1/nodes": "vuoa",
  "GET /v1/nodes/{id}": "vuoa",
  "GET /v1/nodes/{id}/console": "uoa",
  "GET /v1/requests": "vuoa",
  "GET /v1/requests/{id}": "vuoa",
  "GET /v1/leases": "vuoa",
  "GET /v1/leases/{id}": "vuoa",
  "GET /v1/leases/{id}/nodes": "vuoa",
  "GET /v1/labels": "vuoa",
  "GET /v1/pools": "voa",
  "GET /v1/providers": "voa",
  "GET /v1/providers/{id}": "voa",
  "GET /v1/images": "voa",
  "GET /v1/builds": "voa",
  "GET /v1/uploads": "voa",
  "GET /v1/members": "voa",
  "GET /v1/standings": "voa",
  "GET /v1/tenants": "voa",
  "GET /v1/tokens": "a",
  "GET /v1/audit": "oa",
  "POST /v1/leases": "uoa",
  "POST /v1/leases/{id}/heartbeat": "uoa",
  "POST /v1/leases/{id}/extend": "uoa",
  "POST /v1/leases/{id}/release": "uoa",
  "POST /v1/nodes/{id}/hold": "oa",
  "POST /v1/nodes/{id}/release": "oa",
  "DELETE /v1/nodes/{id}": "oa",
  "POST /v1/nodes/{id}/forget": "oa",
  "POST /v1/images/{id}/build": "oa",
  "POST /v1/images/{id}/pause": "oa",
  "POST /v1/images/{id}/unpause": "oa",
  "POST /v1/tokens": "a",
  "DELETE /v1/tokens/{name}": "a",
};
const ROLES = { v: "viewer", u: "user", o: "operator", a: "admin" } as const;

/** Valid enough to come to the handler, of things that do not exist. */
const PARAMS: Readonly<Record<string, string>> = { kind: "node", name: "nobody" };
const idFor = (path: string) => {
  if (path.startsWith("/v1/leases")) return "0123456789ab";
  return path.startsWith("/v1/images") ? "noble" : "0000009999";
};
// A stream that is let in does not end: this one is refused by its handler.
const urlOf = (path: string) =>
  path === "/v1/events"
    ? `${path}?kinds=nothing`
    : path.replace(/\{(\w+)\}/g, (_, name) => PARAMS[name] ?? idFor(path));

let site: ApiRig;
let socket: string;
const tokens: Record<string, string> = {};
const folder = mkdtempSync(join(tmpdir(), "nodeyard-rights-"));

beforeAll(async () => {
  // Each role calls each route, some of which cost many calls: the rate limit counts time a thousand times faster.
  const clock = { ...systemClock, monotonic: () => systemClock.monotonic() * 1_000 };
  site = await startApi(undefined, undefined, clock);
  for (const role of Object.values(ROLES)) tokens[role] = await site.token({ name: role, role });
  socket = await site.listen({ socket: join(folder, "http.sock") });
});
afterAll(async () => {
  await site[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });
const call = (address: string, { method, path }: { method: string; path: string }, token?: string) =>
  ask(address, urlOf(path), { method, ...(token === undefined ? {} : bearer(token)) });

/** As a browser that was let in by this token; `csrf`: as its page does. */
async function callByCookie({ method, path }: { method: string; path: string }, token: string, csrf = true) {
  const page = await logIn(site.url, bearer(token));
  const headers = { cookie: page.cookie, ...(csrf && { "x-nodeyard-csrf": page.csrf }) };
  return ask(site.url, urlOf(path), { method, headers });
}

describe("rights", () => {
  test("a wrong token is answered as such, and none as none", async () => {
    const said = async (headers: Record<string, string>) => {
      const { status, text } = await ask(site.url, "/v1/me", { headers });
      const { code, detail } = JSON.parse(text);
      return [status, code, detail];
    };
    expect(await said({})).toEqual([401, "api.no_token", expect.stringMatching(/^send a token: /)]);
    for (const wrong of ["x", `nyt_nobody_${"0".repeat(64)}`])
      expect(await said({ authorization: `Bearer ${wrong}` })).toEqual([
        401,
        "api.bad_token",
        expect.stringContaining("is not known here, has expired or was revoked"),
      ]);
    const [, , scheme] = await said({ authorization: "Basic eDp5" });
    expect(scheme).toBe("the header Authorization has no token: send Bearer TOKEN in it");
  });

  test("a body that is missing, of another type or too long is answered with what is expected", async () => {
    const said = async (body: string | undefined, type?: string) => {
      const headers = {
        ...bearer(tokens.operator!).headers,
        ...(type !== undefined && { "content-type": type }),
      };
      const { status, text } = await ask(site.url, "/v1/leases", {
        method: "POST",
        headers,
        ...(body !== undefined && { body }),
      });
      return `${status} ${JSON.parse(text).detail}`;
    };
    const json = "application/json";
    expect(await said(undefined)).toMatch(
      /^400 there is no body: send a JSON object with labels, for_seconds, /,
    );
    expect(await said("", json)).toMatch(/^400 .*JSON/);
    expect(await said("{", json)).toMatch(/^400 .*JSON/);
    expect(await said("labels=a", "text/plain")).toMatch(/^415 .*Content-Type: application\/json$/);
    expect(await said(JSON.stringify({ labels: ["x".repeat(70_000)] }), json)).toMatch(/^413 .*64 KiB/);
  });

  test("the table has every route, and no other", () => {
    expect(ROUTES.map(({ method, path }) => `${method} ${path}`).sort()).toEqual(Object.keys(RIGHTS).sort());
  });

  test.each(ROUTES.map((route) => [`${route.method} ${route.path}`, route] as const))(
    "%s",
    async (name, route) => {
      const nobody = await call(site.url, route);
      expect([nobody.status, JSON.parse(nobody.text).code]).toEqual([401, "api.no_token"]);
      expect(nobody.headers["www-authenticate"]).toBe("Bearer");
      for (const [letter, role] of Object.entries(ROLES)) {
        const { status, text } = await call(site.url, route, tokens[role]);
        const isAllowed = RIGHTS[name]!.includes(letter);
        // A call that is allowed fails later: there is no such thing, or the body is missing. A token is no session.
        expect([role, status === 403], text).toEqual([role, !isAllowed]);
        expect(status === 401, text).toBe(route.access === "cookie");
        expect(status, text).toBeLessThan(500);

        const byCookie = await callByCookie(route, tokens[role]!);
        expect([role, byCookie.status === 403], byCookie.text).toEqual([role, !isAllowed]);
        // Nobody is let in anew by a cookie.
        expect(byCookie.status === 401, byCookie.text).toBe(route.access === "open");
        expect(byCookie.status, byCookie.text).toBeLessThan(500);
        const byOtherPage = await callByCookie(route, tokens[role]!, false);
        const isRefused = route.method !== "GET" && route.access !== "open";
        expect([byOtherPage.status, isRefused && JSON.parse(byOtherPage.text).code]).toEqual(
          isRefused ? [403, "api.no_csrf"] : [byCookie.status, false],
        );
      }
      const asOperator = await call(socket, route);
      expect(asOperator.status === 403).toBe(!RIGHTS[name]!.includes("o"));
    },
  );

  test("only an authenticated caller learns that a path or method does not exist", async () => {
    for (const path of ["/v1/nope", "/v1/", "/v1/labels/small", "/v1/openapi.json/x"]) {
      expect([path, (await ask(site.url, path)).status]).toEqual([path, 401]);
      const known = await ask(site.url, path, bearer(tokens.viewer!));
      expect([path, known.status, known.headers["content-type"]]).toEqual([
        path,
        404,
        expect.stringContaining("application/problem+json"),
      ]);
    }
    for (const method of ["PUT", "PATCH", "OPTIONS", "HEAD", "TRACE", "QUERY"]) {
      expect((await ask(site.url, "/v1/nodes", { method })).status).toBe(401);
      const { status, headers } = await ask(site.url, "/v1/nodes", { method, ...bearer(tokens.admin!) });
      expect([status, headers.allow]).toEqual([405, "GET"]);
    }
  });

  test("a listener's own token is for looking, and opens no other listener", async () => {
    const token = "0123456789abcdef0123";
    const address = await site.listen({ host: "127.0.0.1", port: 0, token });
    expect(JSON.parse((await ask(address, "/v1/me", bearer(token))).text).role).toBe("viewer");
    expect((await ask(address, "/v1/me", bearer(tokens.user!))).status).toBe(200);
    // A token by name is for REST v1 alone.
    expect((await ask(address, "/node-list", bearer(tokens.admin!))).status).toBe(401);
    expect((await ask(address, "/v1/me")).status).toBe(401);
    expect((await ask(site.url, "/v1/me", bearer(token))).status).toBe(401);
    await site.api.leave(address);
  });
});

describe("tokens", () => {
  test.each([
    ["another secret", (text: string) => text.replace(/.$/, (last) => (last === "0" ? "1" : "0"))],
    ["another name", (text: string) => text.replace("nyt_viewer_", "nyt_user_")],
    ["a name that nobody has", (text: string) => text.replace("nyt_viewer_", "nyt_ghost_")],
    ["a path for a name", (text: string) => text.replace("nyt_viewer_", "nyt_../layout_")],
    ["less of it", (text: string) => text.slice(0, -1)],
    ["more of it", (text: string) => `${text}0`],
  ])("with %s is none", async (_, change) => {
    expect((await ask(site.url, "/v1/me", bearer(change(tokens.viewer!)))).status).toBe(401);
  });

  test("is stored nowhere: the record has its hash", async () => {
    const { data } = await site.rig.tree.get(tokenPath("viewer"));
    expect(Buffer.from(data).toString()).not.toContain(tokens.viewer!.slice(-64));
  });

  test("that is revoked is good no more, at once, and its name can be used again", async () => {
    const text = await site.token({ name: "gone", role: "viewer" });
    expect((await ask(site.url, "/v1/me", bearer(text))).status).toBe(200);
    await expect(site.token({ name: "gone", role: "admin" })).rejects.toMatchObject({ code: "token.exists" });
    await revokeToken(site.handles, "gone", "me");
    await until("it is refused", async () => (await ask(site.url, "/v1/me", bearer(text))).status === 401);
    const next = await site.token({ name: "gone", role: "user" });
    await until(
      "the next one is good",
      async () => (await ask(site.url, "/v1/me", bearer(next))).status === 200,
    );
    expect((await ask(site.url, "/v1/me", bearer(text))).status).toBe(401);
    await expect(revokeToken(site.handles, "nobody", "me")).rejects.toMatchObject({ code: "token.unknown" });
  });

  test("ends at its time", async () => {
    const { handles } = site;
    const wanted = { name: "short", role: "viewer", labels: ["*"], tenants: ["*"], by: "me" } as const;
    const { text, token } = await createToken(handles, { ...wanted, forMs: 60_000 });
    const { data } = await site.rig.tree.get(tokenPath("short"));
    expect(checkToken(text, data, token.expires - 1)).toMatchObject({ name: "short" });
    expect(checkToken(text, data, token.expires)).toBeUndefined();
    expect(token.expires - systemClock.now()).toBeLessThanOrEqual(60_000);
  });

  test("by REST: made and revoked by an admin, shown without their hash", async () => {
    const admin = {
      headers: { authorization: `Bearer ${tokens.admin}`, "content-type": "application/json" },
    };
    const body = JSON.stringify({ name: "by-rest", role: "user", labels: ["small"], tenants: ["t"] });
    const made = await ask(site.url, "/v1/tokens", { method: "POST", ...admin, body });
    expect(made.status, made.text).toBe(201);
    const { token } = JSON.parse(made.text);
    expect(JSON.parse((await ask(site.url, "/v1/me", bearer(token))).text)).toEqual({
      name: "token:by-rest",
      role: "user",
      labels: ["small"],
      tenants: ["t"],
    });
    const list = await ask(site.url, "/v1/tokens?name=by-rest", admin);
    expect(JSON.parse(list.text).items).toMatchObject([{ name: "by-rest", created_by: "token:admin" }]);
    expect(list.text).not.toContain("hash");
    const { headers } = bearer(tokens.admin!);
    expect((await ask(site.url, "/v1/tokens/by-rest", { method: "DELETE", headers })).status).toBe(204);
    expect((await ask(site.url, "/v1/me", bearer(token))).status).toBe(401);
  });
});

describe("the audit", () => {
  test("has the caller, the action, the reason and the result; also of refused calls", async () => {
    const before = site.audit.length;
    const headers = { authorization: `Bearer ${tokens.operator}`, "content-type": "application/json" };
    const body = JSON.stringify({ why: "look at the disk" });
    await ask(site.url, "/v1/nodes/0000009999/hold", { method: "POST", headers, body });
    await call(site.url, { method: "DELETE", path: "/v1/nodes/{id}" }, tokens.viewer);
    await call(site.url, { method: "GET", path: "/v1/nodes" }, tokens.viewer);
    await call(site.url, { method: "DELETE", path: "/v1/nodes/{id}" });
    await until("both are noted", () => site.audit.length >= before + 2);
    expect(site.audit.slice(before)).toEqual([
      {
        who: "token:operator",
        role: "operator",
        action: "hold_node",
        subject: "0000009999",
        why: "look at the disk",
        status: 404,
      },
      {
        who: "token:viewer",
        role: "viewer",
        action: "delete_node",
        subject: "0000009999",
        why: null,
        status: 403,
      },
    ]);
    const read = await ask(site.url, "/v1/audit?who=token:viewer&action=delete_node", { headers });
    expect(JSON.parse(read.text).items.at(-1)).toMatchObject({ subject: "0000009999", status: 403 });
  });
});
