import { expect, test } from "vitest";
import { authBody, identityUrl } from "../../src/client/auth.ts";
import { endpointOf, missing } from "../../src/client/catalog.ts";

const body = (values: Record<string, string>, type: string | null = null) =>
  authBody({ authUrl: "http://cloud/v3", type, values });

test("a password, with domains by name, by id, shared, or the default one", () => {
  const named = { username: "u", password: "p", project_name: "t", user_domain_name: "d" };
  expect(body(named)).toEqual({
    auth: {
      identity: {
        methods: ["password"],
        password: { user: { name: "u", domain: { name: "d" }, password: "p" } },
      },
      scope: { project: { name: "t", domain: { id: "default" } } },
    },
  });
  expect(body({ user_id: "1", password: "p", project_id: "2" })).toEqual({
    auth: {
      identity: { methods: ["password"], password: { user: { id: "1", password: "p" } } },
      scope: { project: { id: "2" } },
    },
  });
});

test("an application credential carries its own scope; a token is recognised by its field", () => {
  const credential = { application_credential_id: "a", application_credential_secret: "s" };
  const identity = { methods: ["application_credential"], application_credential: { id: "a", secret: "s" } };
  expect(body(credential)).toEqual({ auth: { identity } });
  expect(body({ ...credential, password: "x" }, "v3applicationcredential")).toEqual({ auth: { identity } });
  expect(body({ token: "t", project_id: "2" })).toMatchObject({
    auth: { identity: { methods: ["token"], token: { id: "t" } } },
  });
});

test("what is missing or not supported is named with its place", () => {
  expect(() => body({ username: "u", project_id: "1" })).toThrow("auth has no password; add it");
  expect(() => body({ username: "u", password: "p" })).toThrow("auth names no project");
  expect(() => body({}, "v3oidcpassword")).toThrow("auth_type v3oidcpassword is not supported");
});

test("keystone is found with and without its version", () => {
  for (const url of ["http://c:5000", "http://c:5000/", "http://c:5000/v3/", "http://c:5000/v2.0"])
    expect(identityUrl(url)).toBe("http://c:5000/v3");
  expect(identityUrl("https://c/identity")).toBe("https://c/identity/v3");
});

const endpoint = (face: string, region: string, url: string) => ({ interface: face, region_id: region, url });
const catalog = [
  {
    type: "compute",
    endpoints: [endpoint("public", "A", "http://a/v2.1/"), endpoint("internal", "B", "http://b")],
  },
  { type: "volumev3", endpoints: [endpoint("public", "A", "http://v/v3/p")] },
];

test("a service is found by type, older names included, region and interface", () => {
  const at = (
    service: "compute" | "block-storage" | "image",
    region: string | null,
    ...interfaces: string[]
  ) => endpointOf(catalog, { service, region, interfaces });
  expect(at("compute", "A", "public")).toBe("http://a/v2.1");
  expect(at("compute", "B", "public", "internal")).toBe("http://b");
  expect(at("compute", "B", "public")).toBeUndefined();
  expect(at("block-storage", null, "public")).toBe("http://v/v3/p");
  expect(at("image", null, "public")).toBeUndefined();
  const wanted = { service: "compute", region: "C", interfaces: ["public"] } as const;
  expect(missing(catalog, wanted).message).toContain("it is in A, B with interfaces public, internal");
});
