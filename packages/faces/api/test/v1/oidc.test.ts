import { createSecretKey } from "node:crypto";
import type { IssuerConfig } from "@nodeyard/config";
import { systemClock, VirtualClock } from "@nodeyard/runtime";
import type { JWTPayload } from "jose";
import { SignJWT } from "jose";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { until } from "../../../../pool/launcher/test/rig.ts";
import { fetchJson } from "../../src/edge/fetch-json.ts";
import { Issuers } from "../../src/v1/issuers.ts";
import { type ApiRig, ask, logIn, startApi } from "../rig.ts";
import { EventClient } from "./event-client.ts";
import { newKey, TestIssuer } from "./issuer.ts";

const grant = (claims: Record<string, readonly string[]>, role: string, labels = ["*"], tenants = ["*"]) =>
  ({ claims, role, labels, tenants }) as IssuerConfig["grants"][number];
const GRANTS = [
  grant({ groups: ["ci-admins"] }, "admin"),
  grant({ "realm_access.roles": ["ops", "sre"] }, "operator"),
  grant({ project: ["web"], "https://ci.example/protected": ["true"] }, "user", ["small"], ["web"]),
];

let issuer: TestIssuer;
const configOf = (more: Partial<IssuerConfig> = {}): IssuerConfig => ({
  ...{ name: "sso", issuer: issuer.url, audience: "nodeyard", nameClaim: "sub", grants: GRANTS },
  ...more,
});
beforeEach(async () => {
  issuer = await TestIssuer.start();
});
afterEach(() => issuer[Symbol.asyncDispose]());

describe("a JSON Web Token", () => {
  let clock: VirtualClock;
  let issuers: Issuers;
  beforeEach(() => {
    clock = new VirtualClock();
    issuers = new Issuers(clock, fetchJson);
    issuers.configure([configOf()]);
  });
  const claim = async (claims: JWTPayload, key?: Awaited<ReturnType<typeof newKey>>) =>
    issuers.claim(await issuer.token(claims, clock.now(), key));
  const admin = { groups: ["people", "ci-admins"] };

  test.each([
    ["a list", admin, "admin", ["*"], ["*"]],
    ["one text", { groups: "ci-admins" }, "admin", ["*"], ["*"]],
    ["a list within another claim", { realm_access: { roles: ["sre"] } }, "operator", ["*"], ["*"]],
    ["all of several", { project: "web", "https://ci.example/protected": true }, "user", ["small"], ["web"]],
  ])("has the rights of the first entry that matches: %s", async (_, claims, role, labels, tenants) => {
    expect(await claim(claims)).toMatchObject({ name: "oidc:sso:alice", role, labels, tenants });
  });

  test.each([
    ["nothing that matches", {}],
    ["another group", { groups: ["ci-admins-of-others"] }],
    ["one of several", { project: "web" }],
    ["a path that leads nowhere", { realm_access: "sre" }],
    ["a mapping where a text should be", { groups: { "ci-admins": true } }],
  ])("with %s has none", async (_, claims) => {
    await expect(claim(claims)).rejects.toMatchObject({ code: "api.no_grant", status: 403 });
  });

  test.each([
    ["another audience", { ...admin, aud: "others" }, "api.bad_jwt"],
    ["no audience", { ...admin, aud: undefined }, "api.bad_jwt"],
    ["another issuer", { ...admin, iss: "https://evil.example" }, "api.bad_jwt"],
    ["no end", { ...admin, exp: undefined }, "api.bad_jwt"],
    ["no name", { ...admin, sub: undefined }, "api.bad_jwt"],
    ["a name that breaks a line of a log", { ...admin, sub: "a\nb" }, "api.bad_jwt"],
  ])("with %s is refused", async (_, claims, code) => {
    await expect(claim(claims as JWTPayload)).rejects.toMatchObject({ code, status: 401 });
  });

  test("counts from its beginning to its end, with half a minute for clocks that differ", async () => {
    const now = Math.floor(clock.now() / 1_000);
    const at = (claims: JWTPayload) => claim({ ...admin, ...claims });
    expect((await at({ exp: now - 29 }))!.limit).toBe((now + 1) * 1_000);
    await expect(at({ exp: now - 31 })).rejects.toMatchObject({ code: "api.jwt_expired", status: 401 });
    expect(await at({ nbf: now + 29 })).toBeDefined();
    await expect(at({ nbf: now + 31 })).rejects.toMatchObject({ code: "api.bad_jwt" });
  });

  test("is refused with a foreign signature, under the name of a good key or of none", async () => {
    for (const kid of ["first", "other"])
      await expect(claim(admin, await newKey(kid))).rejects.toMatchObject({
        code: "api.bad_jwt",
        status: 401,
      });
  });

  test("is refused without a signature, or with one that its clients could make", async () => {
    const good = await issuer.token(admin, clock.now());
    const [, payload] = good.split(".");
    const head = (header: object) => Buffer.from(JSON.stringify(header)).toString("base64url");
    const unsigned = `${head({ alg: "none" })}.${payload}.`;
    // The public key of the issuer as a secret: an old confusion.
    const secret = createSecretKey(Buffer.from(JSON.stringify(issuer.keys[0]!.jwk)));
    const bySecret = await new SignJWT(JSON.parse(Buffer.from(payload!, "base64url").toString()))
      .setProtectedHeader({ alg: "HS256", kid: "first" })
      .sign(secret);
    const other = `${good.slice(0, -4)}AAAA`;
    for (const bad of [unsigned, bySecret])
      await expect(issuers.claim(bad)).rejects.toMatchObject({
        ...{ code: "api.bad_jwt", status: 401 },
        message: expect.stringContaining("value not allowed"),
      });
    for (const bad of [other, "a.b.c"])
      await expect(issuers.claim(bad)).rejects.toMatchObject({ code: "api.bad_jwt", status: 401 });
    expect(await issuers.claim("no-token")).toBeUndefined();
  });

  test("is judged by keys that are read once, however many come, and again after ten minutes", async () => {
    await Promise.all([claim(admin), claim(admin), claim(admin)]);
    await claim(admin);
    expect(issuer.asked).toEqual(["/realm/.well-known/openid-configuration", "/realm/keys"]);
    await clock.advance(601_000);
    await claim(admin);
    expect(issuer.asked).toHaveLength(4);
  });

  test("of a new key is accepted at once; invented key names cause no further requests", async () => {
    await claim(admin);
    await clock.advance(31_000);
    const next = await newKey("second", "RS256");
    issuer.keys = [...issuer.keys, next];
    expect(await claim(admin)).toMatchObject({ role: "admin" });
    const asked = issuer.asked.length;
    for (const kid of ["third", "fourth"]) await expect(claim(admin, await newKey(kid))).rejects.toThrow();
    expect(issuer.asked).toHaveLength(asked);
  });

  test("of a key that the issuer has withdrawn is refused when the keys are read again", async () => {
    const [old] = issuer.keys;
    await claim(admin, old);
    issuer.keys = [await newKey("second")];
    await clock.advance(601_000);
    await expect(claim(admin, old)).rejects.toMatchObject({ code: "api.bad_jwt" });
  });

  test("is judged by the former keys while the issuer is away, for an hour", async () => {
    await claim(admin);
    issuer.instead.set("/realm/keys", { status: 500, text: "" });
    await clock.advance(601_000);
    expect(await claim(admin)).toMatchObject({ role: "admin" });
    const asked = issuer.asked.length;
    await claim(admin);
    expect(issuer.asked).toHaveLength(asked);
    await clock.advance(3_600_000);
    await expect(claim(admin)).rejects.toMatchObject({ code: "api.issuer_away" });
    issuer.instead.clear();
    await clock.advance(6_000);
    expect(await claim(admin)).toMatchObject({ role: "admin" });
  });

  test.each([
    ["is away", { status: 503, text: "" }],
    [
      "is another one",
      { status: 200, text: JSON.stringify({ issuer: "https://x.example", jwks_uri: "https://x.example/k" }) },
    ],
    ["has keys that anybody could send", { status: 200, text: "keys" }],
    ["answers no JSON", { status: 200, text: "<html>" }],
    ["answers without end", { status: 200, text: `"${"x".repeat(300_000)}"` }],
  ])("cannot be judged when the issuer %s", async (_, reply) => {
    const text =
      reply.text === "keys"
        ? JSON.stringify({ issuer: issuer.url, jwks_uri: "http://evil.example/keys" })
        : reply.text;
    issuer.instead.set("/realm/.well-known/openid-configuration", { ...reply, text });
    await expect(claim(admin)).rejects.toMatchObject({ code: "api.issuer_away" });
    expect(issuer.asked).toHaveLength(1);
  });

  test("has rights no longer than the configuration that gave them; another one keeps the keys", async () => {
    const before = (await claim(admin))!;
    expect(issuers.knows(before)).toBe(true);
    issuers.configure([configOf({ grants: GRANTS.slice(1) })]);
    expect(issuers.knows(before)).toBe(false);
    await expect(claim(admin)).rejects.toMatchObject({ code: "api.no_grant" });
    expect(issuer.asked).toHaveLength(2);
    issuers.configure([]);
    expect(await claim(admin)).toBeUndefined();
  });
});

describe("REST v1", () => {
  let site: ApiRig;
  beforeAll(async () => {
    site = await startApi();
  });
  afterAll(() => site[Symbol.asyncDispose]());
  const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });

  test("takes the tokens of an issuer as its own, audit and session included", async () => {
    site.api.trust([configOf()]);
    const token = await issuer.token({ groups: ["ci-admins"] }, Date.now());
    const me = await ask(site.url, "/v1/me", bearer(token));
    expect(JSON.parse(me.text)).toMatchObject({ name: "oidc:sso:alice", role: "admin" });
    await ask(site.url, "/v1/tokens/nobody", { method: "DELETE", ...bearer(token) });
    await until("it is noted", () => site.audit.some(({ who }) => who === "oidc:sso:alice"));

    const { cookie, expires } = await logIn(site.url, bearer(token));
    // Not longer than the token.
    expect(Date.parse(expires) - Date.now()).toBeLessThan(331_000);
    const stream = new EventClient();
    await stream.connect(site.url, "/v1/events", { cookie });
    await until("all is told", () => stream.count("synced") > 0);
    expect((await ask(site.url, "/v1/session", { headers: { cookie } })).status).toBe(200);
    site.api.trust([]);
    expect((await ask(site.url, "/v1/session", { headers: { cookie } })).status).toBe(401);
    expect((await ask(site.url, "/v1/me", bearer(token))).status).toBe(401);
    await stream.cut();
  });

  test("says what is wrong with a token, and asks to come again while the issuer is away", async () => {
    site.api.trust([configOf()]);
    issuer.instead.set("/realm/keys", { status: 500, text: "" });
    const token = await issuer.token({ groups: ["ci-admins"] }, Date.now());
    const away = await ask(site.url, "/v1/me", bearer(token));
    expect([away.status, away.headers["retry-after"], JSON.parse(away.text).code]).toEqual([
      503,
      "1",
      "api.issuer_away",
    ]);
    const other = await ask(
      site.url,
      "/v1/me",
      bearer(await issuer.token({ iss: "https://x.example" }, Date.now())),
    );
    expect([other.status, other.headers["www-authenticate"], JSON.parse(other.text)]).toEqual([
      401,
      "Bearer",
      expect.objectContaining({ code: "api.bad_jwt", detail: expect.stringContaining("https://x.example") }),
    ]);
  });

  test("delays a caller that tries many tokens", async () => {
    // No time passes in which a call would be given back.
    await using still = await startApi(undefined, undefined, { ...systemClock, monotonic: () => 0 });
    still.api.trust([configOf()]);
    const statuses: number[] = [];
    for (let n = 0; n < 201; n++) statuses.push((await ask(still.url, "/v1/me", bearer("a.b.c"))).status);
    expect(statuses.findIndex((status) => status !== 401)).toBe(200);
    expect(statuses.at(-1)).toBe(429);
  });
});
