import { describe, expect, it } from "vitest";
import { diffConfig } from "../src/index.ts";
import { exitCode, load, loaded } from "./support.ts";

const issuer = (more = "", url = "https://sso.example/realms/ci") =>
  `webapp: {oidc: [{name: sso, issuer: "${url}", audience: nodeyard${more}}]}`;
const grants = (text: string) => issuer(`, grants: [${text}]`);

describe("issuers of tokens", () => {
  it("give rights by their claims; a caller who is no user has no limits unless some are named", () => {
    const text = grants(
      "{claims: {groups: [ci, qa]}, role: viewer}, {claims: {a.b: web, p: true, n: 7}, role: user, labels: [small], tenants: ['*']}",
    );
    expect(exitCode("{}")).toBe(0);
    expect(loaded("{}").webapp).toMatchObject({ tls: null, oidc: [] });
    expect(loaded(text).webapp.oidc).toEqual([
      {
        ...{ name: "sso", issuer: "https://sso.example/realms/ci", audience: "nodeyard", nameClaim: "sub" },
        grants: [
          { claims: { groups: ["ci", "qa"] }, role: "viewer", labels: ["*"], tenants: ["*"] },
          {
            claims: { "a.b": ["web"], p: ["true"], n: ["7"] },
            role: "user",
            labels: ["small"],
            tenants: ["*"],
          },
        ],
      },
    ]);
    expect(loaded(issuer()).webapp.oidc[0]!.grants).toEqual([]);
  });

  it.each([
    ["no role", grants("{claims: {groups: ci}}"), "role"],
    [
      "another role",
      grants("{claims: {groups: ci}, role: root}"),
      "must be one of viewer, user, operator, admin",
    ],
    ["no claims", grants("{role: admin}"), "must name a claim"],
    ["empty claims", grants("{claims: {}, role: admin}"), "must name a claim"],
    [
      "a user without limits",
      grants("{claims: {groups: ci}, role: user, labels: ['*']}"),
      "is user, which needs",
    ],
    [
      "an admin with limits",
      grants("{claims: {groups: ci}, role: admin, tenants: [web]}"),
      "is not limited to",
    ],
    [
      "a name that others could have",
      issuer().replace("name: sso", "name: 'a:b'"),
      'is "a:b"; write 1 to 63',
    ],
    ["an issuer that anybody on the way could be", issuer("", "http://sso.example"), "write an https URL"],
    ["an issuer that is no URL", issuer("", "sso"), "write an https URL"],
    ["no audience", issuer().replace(", audience: nodeyard", ""), "audience: is missing"],
  ])("with %s are refused", (_, text, why) => {
    const { config, errors } = load(text);
    expect(errors.join("\n")).toContain(why);
    expect(config).toBeUndefined();
  });
});

it("issuers take effect at a reload, an address or other files at the next start", () => {
  const [none, one] = [loaded("{}"), loaded(issuer())];
  expect(diffConfig(none, one)).toMatchObject({ issuersChanged: true, webappNeedsRestart: true, any: true });
  const other = loaded(issuer(", grants: [{claims: {groups: ci}, role: viewer}]"));
  expect(diffConfig(one, other)).toMatchObject({
    issuersChanged: true,
    webappNeedsRestart: false,
    any: true,
  });
  expect(diffConfig(one, loaded(issuer()))).toMatchObject({ issuersChanged: false, any: false });
  const tls = loaded("webapp: {tls: {cert: /c, key: /k}}");
  expect(diffConfig(none, tls)).toMatchObject({ issuersChanged: false, webappNeedsRestart: true });
});

it("TLS needs a certificate and a key", () => {
  expect(loaded("webapp: {tls: {cert: /c, key: /k}}").webapp.tls).toEqual({
    cert: "/c",
    key: "/k",
    ca: null,
  });
  expect(load("webapp: {tls: {cert: /c}}").errors.join()).toContain("key: is missing");
  expect(exitCode("webapp: {tls: {cert: /c, key: /k, chain: /x}}")).toBe(1);
});
