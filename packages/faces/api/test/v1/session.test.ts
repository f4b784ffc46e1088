import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LOGINS, loginPath, type Token } from "@nodeyard/model";
import { checkLogin, createLogin, revokeToken } from "@nodeyard/operations";
import { VirtualClock } from "@nodeyard/runtime";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { until } from "../../../../pool/launcher/test/rig.ts";
import { BY_SOCKET, byToken } from "../../src/v1/principal.ts";
import { type ApiRig, ask, logIn, startApi } from "../rig.ts";
import { EventClient } from "./event-client.ts";

let site: ApiRig;
let socket: string;
const tokens: Record<string, string> = {};
const folder = mkdtempSync(join(tmpdir(), "nodeyard-session-"));

beforeAll(async () => {
  site = await startApi();
  socket = await site.listen({ socket: join(folder, "http.sock") });
  for (const role of ["viewer", "admin"] as const) tokens[role] = await site.token({ name: role, role });
  tokens.blue = await site.token({ name: "blue", role: "user", labels: ["small"], tenants: ["blue"] });
});
afterAll(async () => {
  await site[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });
const json = (body: unknown, headers = {}) => ({
  headers: { "content-type": "application/json", ...headers },
  body: JSON.stringify(body),
});
const session = (cookie: string, headers = {}) =>
  ask(site.url, "/v1/session", { headers: { cookie, ...headers } });
const ticketBy = async (address: string, options = {}) => {
  const made = await ask(address, "/v1/session/tickets", { method: "POST", ...options });
  expect(made.status, made.text).toBe(201);
  return JSON.parse(made.text) as { ticket: string; expires: string; address: string };
};

describe("a session", () => {
  test("has the rights of the token that it was opened by, and says so", async () => {
    const { set, cookie, csrf } = await logIn(site.url, bearer(tokens.blue!));
    expect(set).toMatch(
      /^nodeyard_session=nys_[0-9a-f]{12}_[0-9a-f]{64}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=3\d{3}$/,
    );
    const { status, text } = await session(cookie);
    expect([status, JSON.parse(text)]).toMatchObject([
      200,
      { name: "token:blue", role: "user", labels: ["small"], tenants: ["blue"], csrf },
    ]);
    expect(csrf).not.toContain(cookie.slice(-20));
    const me = await ask(site.url, "/v1/me", { headers: { cookie } });
    expect(JSON.parse(me.text)).toMatchObject({ name: "token:blue", role: "user" });
  });

  test("behind a proxy with TLS has a cookie that only TLS and this host can set", async () => {
    const { set, cookie } = await logIn(site.url, {
      headers: { ...bearer(tokens.viewer!).headers, "x-forwarded-proto": "https" },
    });
    expect(set).toMatch(/^__Host-nodeyard_session=\S+; Path=\/; .*; Secure$/);
    expect((await session(cookie, { "x-forwarded-proto": "https" })).status).toBe(200);
    // One of the plain name may be another host's.
    const plain = cookie.replace("__Host-", "");
    expect((await session(plain, { "x-forwarded-proto": "https" })).status).toBe(401);
  });

  test("changes something only for a page that knows its csrf", async () => {
    const [one, other] = [
      await logIn(site.url, bearer(tokens.blue!)),
      await logIn(site.url, bearer(tokens.blue!)),
    ];
    const lease = (headers: Record<string, string>) =>
      ask(site.url, "/v1/leases", {
        method: "POST",
        ...json({ labels: ["small"] }, { cookie: one.cookie, ...headers }),
      });
    for (const headers of [{}, { "x-nodeyard-csrf": "" }, { "x-nodeyard-csrf": other.csrf }]) {
      const { status, text } = await lease(headers as Record<string, string>);
      expect([status, JSON.parse(text).code]).toEqual([403, "api.no_csrf"]);
    }
    const made = await lease({ "x-nodeyard-csrf": one.csrf });
    expect([made.status, JSON.parse(made.text).owner]).toEqual([201, "token:blue"]);
    expect(site.audit.filter(({ action }) => action === "create_lease").map(({ status }) => status)).toEqual([
      403, 403, 403, 201,
    ]);
  });

  test.each([
    ["another secret", (cookie: string) => cookie.replace(/.$/, (last) => (last === "0" ? "1" : "0"))],
    ["an id that nobody has", (cookie: string) => cookie.replace(/nys_.{12}/, "nys_000000000000")],
    ["a ticket's mark", (cookie: string) => cookie.replace("nys_", "nyl_")],
    ["another name", (cookie: string) => `x${cookie}`],
    ["a broken token beside it", (cookie: string) => cookie, { authorization: "Bearer nyt_admin_0" }],
  ])("with %s is none", async (_, change, headers: Record<string, string> = {}) => {
    const { cookie } = await logIn(site.url, bearer(tokens.viewer!));
    expect((await ask(site.url, "/v1/me", { headers: { cookie: change(cookie), ...headers } })).status).toBe(
      401,
    );
  });

  test("ends when it is logged out, with its streams, and only there", async () => {
    const [one, other] = [
      await logIn(site.url, bearer(tokens.viewer!)),
      await logIn(site.url, bearer(tokens.viewer!)),
    ];
    const stream = new EventClient();
    await stream.connect(site.url, "/v1/events", { cookie: one.cookie });
    await until("all is told", () => stream.count("synced") > 0);
    const headers = { cookie: one.cookie, "x-nodeyard-csrf": one.csrf };
    const ended = await ask(site.url, "/v1/session", { method: "DELETE", headers });
    expect([ended.status, ended.headers["set-cookie"]?.[0]]).toEqual([
      204,
      "nodeyard_session=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0",
    ]);
    await stream.ended;
    expect((await session(one.cookie)).status).toBe(401);
    expect((await session(other.cookie)).status).toBe(200);
  });

  test("ends with its token, with its streams, also where the name is given anew", async () => {
    const token = await site.token({ name: "gone", role: "viewer" });
    const { cookie } = await logIn(site.url, bearer(token));
    const stream = new EventClient();
    await stream.connect(site.url, "/v1/events", { cookie });
    await until("all is told", () => stream.count("synced") > 0);
    await revokeToken(site.handles, "gone", "me");
    await stream.ended;
    await site.token({ name: "gone", role: "admin" });
    expect((await session(cookie)).status).toBe(401);
  });

  test("is a new one at each login, and ends the one that the browser had", async () => {
    const first = await logIn(site.url, bearer(tokens.viewer!));
    const { authorization } = bearer(tokens.blue!).headers;
    const next = await logIn(site.url, { headers: { authorization, cookie: first.cookie } });
    expect(next.cookie).not.toBe(first.cookie);
    expect((await session(first.cookie)).status).toBe(401);
    // What somebody else put into the browser is not taken up.
    const foreign = `nodeyard_session=nys_${"0".repeat(12)}_${"0".repeat(64)}`;
    const fixed = await logIn(site.url, { headers: { authorization, cookie: foreign } });
    expect(fixed.cookie).not.toBe(foreign);
  });

  test("by the token of a listener is for that listener", async () => {
    const token = "0123456789abcdef0123";
    const address = await site.listen({ host: "127.0.0.1", port: 0, token });
    const { cookie } = await logIn(address, bearer(token));
    const here = await ask(address, "/v1/session", { headers: { cookie } });
    expect(JSON.parse(here.text)).toMatchObject({ name: "listener", role: "viewer" });
    expect((await session(cookie)).status).toBe(401);
    await site.api.leave(address);
  });

  test("a form of another site, which cannot send JSON, is refused and sets no cookie", async () => {
    const { ticket } = await ticketBy(socket);
    for (const type of ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"]) {
      const sent = { headers: { "content-type": type }, body: JSON.stringify({ ticket }) };
      expect((await ask(site.url, "/v1/session", { method: "POST", ...sent })).status).toBe(415);
    }
  });

  test("is stored nowhere: the record has its hash", async () => {
    const { cookie } = await logIn(site.url, bearer(tokens.viewer!));
    const [, id, secret] = /nys_(.{12})_(.*)/.exec(cookie)!;
    const { data } = await site.rig.tree.get(loginPath(id!));
    expect(Buffer.from(data).toString()).not.toContain(secret);
  });
});

describe("a ticket", () => {
  test("of the operator's socket lets one browser in, once", async () => {
    const { ticket, address } = await ticketBy(socket);
    expect(address).toBe(site.url);
    const tries = await Promise.all(
      [1, 2, 3].map(() => ask(site.url, "/v1/session", { method: "POST", ...json({ ticket }) })),
    );
    expect(tries.map(({ status }) => status).sort()).toEqual([201, 401, 401]);
    const winner = tries.find(({ status }) => status === 201)!;
    expect(JSON.parse(winner.text)).toMatchObject({ name: "socket", role: "operator" });
    expect(
      site.audit.filter(({ who }) => who === "socket").map(({ action, status }) => [action, status]),
    ).toEqual(
      expect.arrayContaining([
        ["create_ticket", 201],
        ["create_session", 201],
      ]),
    );
    const again = await ask(site.url, "/v1/session", { method: "POST", ...json({ ticket }) });
    expect([again.status, JSON.parse(again.text).code]).toEqual([401, "api.bad_ticket"]);
    // An operator by ticket is not the socket: it makes no tokens, and its calls are counted.
    const cookie = winner.headers["set-cookie"]![0]!.split(";")[0]!;
    expect((await ask(site.url, "/v1/tokens", { headers: { cookie } })).status).toBe(403);
  });

  test("has the rights of its creator, and ends with them", async () => {
    const token = await site.token({ name: "chief", role: "admin" });
    const [one, two] = [await ticketBy(site.url, bearer(token)), await ticketBy(site.url, bearer(token))];
    const page = await logIn(site.url, json({ ticket: one.ticket }));
    expect(page).toMatchObject({ name: "token:chief", role: "admin" });
    await revokeToken(site.handles, "chief", "me");
    await until("its session ends", async () => (await session(page.cookie)).status === 401);
    const late = await ask(site.url, "/v1/session", { method: "POST", ...json({ ticket: two.ticket }) });
    expect(late.status).toBe(401);
  });

  test.each([["none"], ["nyl_000000000000_0"], [`nyl_000000000000_${"0".repeat(64)}`], ["nys"]])(
    "%s is none",
    async (ticket) => {
      const { status, text } = await ask(site.url, "/v1/session", { method: "POST", ...json({ ticket }) });
      expect([status, JSON.parse(text).code]).toEqual([401, "api.bad_ticket"]);
    },
  );

  test("is no session, and a session is no ticket", async () => {
    const { ticket } = await ticketBy(socket);
    for (const text of [ticket, ticket.replace("nyl", "nys")])
      expect((await session(`nodeyard_session=${text}`)).status).toBe(401);
    const { cookie } = await logIn(site.url, bearer(tokens.viewer!));
    const text = cookie.slice(cookie.indexOf("=") + 1);
    for (const wrong of [text, text.replace("nys", "nyl")])
      expect(
        (await ask(site.url, "/v1/session", { method: "POST", ...json({ ticket: wrong }) })).status,
      ).toBe(401);
  });
});

describe("logins", () => {
  const claim = (limit: number) =>
    byToken({
      name: "x",
      role: "viewer",
      hash: "",
      labels: ["*"],
      tenants: ["*"],
      expires: limit,
    } as unknown as Token);
  const start = Date.UTC(2026, 1, 1);
  const rig = () => {
    const clock = new VirtualClock(start);
    const records = new Map<string, Uint8Array>();
    const tree = {
      clockOffset: () => 0,
      async create(path: string, data: Uint8Array) {
        if (path.startsWith(`${LOGINS}/`)) records.set(path.slice(LOGINS.length + 1), data);
      },
      async delete(path: string) {
        records.delete(path.slice(LOGINS.length + 1));
      },
    };
    const handles = { tree, clock, random: site.handles.random } as unknown as ApiRig["handles"];
    return { clock, records, handles };
  };

  test("end at their time, a session not after its token; those that have ended go with the next login", async () => {
    const { clock, records, handles } = rig();
    const limit = start + 3_600_000;
    const ticket = await createLogin(handles, "ticket", BY_SOCKET, records);
    expect(ticket.login.expires).toBe(start + 600_000);
    const short = await createLogin(handles, "session", claim(limit), records);
    expect(short.login.expires).toBe(limit);
    const long = await createLogin(handles, "session", BY_SOCKET, records);
    expect(long.login.expires).toBe(start + 12 * 3_600_000);
    const data = records.get(short.login.id);
    expect(checkLogin(short.text, "session", data, limit - 1)).toMatchObject({ id: short.login.id });
    expect(checkLogin(short.text, "session", data, limit)).toBeUndefined();
    await clock.advance(3_600_000);
    await createLogin(handles, "session", BY_SOCKET, records);
    expect([...records.keys()].includes(long.login.id)).toBe(true);
    expect([...records.keys()]).toHaveLength(2);
  });

  test("of one client are no more than 32: the oldest ends for the next", async () => {
    const { clock, records, handles } = rig();
    const other = await createLogin(handles, "session", BY_SOCKET, records);
    const ids: string[] = [];
    for (let n = 0; n < 40; n++) {
      await clock.advance(1);
      ids.push((await createLogin(handles, "session", claim(start + 3_600_000), records)).login.id);
    }
    expect([...records.keys()].sort()).toEqual([other.login.id, ...ids.slice(-32)].sort());
  });
});
