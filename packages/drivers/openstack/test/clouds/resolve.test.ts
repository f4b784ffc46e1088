import { describe, expect, test } from "vitest";
import { type CloudConfigPaths, resolveCloud } from "../../src/clouds/index.ts";

function around(files: Record<string, string>, env: Record<string, string> = {}): CloudConfigPaths {
  return { env, cwd: "/lab", home: "/home/u", read: (path) => files[path] };
}

const CLOUDS = `
clouds:
  one:
    profile: vendor
    region_name: A
    auth: {username: u, project-name: p}
    interface: internal
    cacert: ~/ca.pem
    rate_limit: 4
    regions:
      - A
      - name: B
        values: {image_format: raw, compute_endpoint_override: "http://b/v2.1"}
    networks:
      - {name: net, routes_externally: true, default_interface: yes}
  two:
    auth: {auth_url: "http://two:5000/v3", username: u, password: inline, project_id: x}
    floating_ip_source: None
    verify: "false"
`;
const FILES = {
  "/etc/openstack/clouds.yaml": CLOUDS,
  "/home/u/.config/openstack/secure.yaml": "clouds: {one: {auth: {password: secret}}}",
  "/lab/clouds-public.yaml": `
public-clouds:
  vendor: {auth: {auth_url: "https://vendor/v3", user_domain_name: Vendor}, image_format: raw, private: true}
`,
};
const one = { cloud: "one", region: null };

test("clouds.yaml, secure.yaml and the vendor's profile make one cloud; what is nearer wins", () => {
  const cloud = resolveCloud(one, around(FILES));
  expect(cloud).toMatchObject({
    name: "one",
    credential: {
      authUrl: "https://vendor/v3",
      values: { username: "u", password: "secret", project_name: "p", user_domain_name: "Vendor" },
    },
    place: { region: "A", interfaces: ["internal"] },
    tls: { verify: true, cacert: "/home/u/ca.pem" },
    imageFormat: "raw",
    floatingIps: true,
    private: true,
    networks: [{ name: "net", external: true, defaultInterface: true, natDestination: false }],
    rateLimit: 4,
  });
});

test("a region lays its values over the cloud's; an unknown one is refused", () => {
  const cloud = resolveCloud({ ...one, region: "B" }, around(FILES));
  expect(cloud.place).toMatchObject({ region: "B", overrides: { compute: "http://b/v2.1" } });
  expect(() => resolveCloud({ ...one, region: "C" }, around(FILES))).toThrow(
    "cloud one has no region C; its regions are A, B",
  );
});

test("flags are read as people write them", () => {
  const cloud = resolveCloud({ cloud: "two", region: null }, around(FILES));
  expect(cloud).toMatchObject({
    floatingIps: false,
    tls: { verify: false },
    imageFormat: "qcow2",
    private: false,
  });
});

describe("which cloud", () => {
  test("OS_CLOUD, the only one, or what OS_* variables describe", () => {
    const none = { cloud: null, region: null };
    expect(resolveCloud(none, around(FILES, { OS_CLOUD: "two" })).name).toBe("two");
    const env = { OS_AUTH_URL: "http://e", OS_USERNAME: "u", OS_PASSWORD: "p", OS_PROJECT_NAME: "t" };
    expect(resolveCloud(none, around({}, { ...env, OS_INSECURE: "1", OS_REGION_NAME: "R" }))).toMatchObject({
      name: "envvars",
      credential: { authUrl: "http://e", values: { username: "u", password: "p", project_name: "t" } },
      tls: { verify: false },
      place: { region: "R" },
    });
    expect(() => resolveCloud(none, around(FILES))).toThrow("there are one, two; add cloud: to it");
  });

  test("the file that a variable names comes first, then the current folder", () => {
    const named = "clouds: {x: {auth: {auth_url: 'http://named'}}}";
    const files = { ...FILES, "/n.yaml": named, "/lab/clouds.yaml": named.replace("named", "here") };
    const x = { cloud: "x", region: null };
    expect(resolveCloud(x, around(files)).credential.authUrl).toBe("http://here");
    expect(resolveCloud(x, around(files, { OS_CLIENT_CONFIG_FILE: "/n.yaml" })).credential.authUrl).toBe(
      "http://named",
    );
  });

  test.each([
    [
      { cloud: "three", region: null },
      FILES,
      "cloud three is not known: /etc/openstack/clouds.yaml has one, two",
    ],
    [one, {}, "there is no clouds.yaml; looked in"],
    [one, { ...FILES, "/lab/clouds-public.yaml": "{}" }, "profile vendor is in no clouds-public.yaml"],
    [one, { "/lab/clouds.yaml": "clouds: {one: {auth: {}}}" }, "cloud one has no auth_url; add it"],
    [one, { "/lab/clouds.yaml": "clouds: {one: {auth: {auth_url: cloud}}}" }, "auth_url cloud is not a URL"],
    [one, { "/lab/clouds.yaml": "clouds: [" }, "/lab/clouds.yaml is not valid YAML"],
    [{ cloud: "toString", region: null }, FILES, "cloud toString is not known"],
  ])("%j: what is wrong is said with its file", (choice, files, message) => {
    expect(() => resolveCloud(choice, around(files as Record<string, string>))).toThrow(message);
  });
});

test("a cloud may stand in secure.yaml alone, and scalars have the types that PyYAML gives them", () => {
  const auth = '{auth_url: "http://k/v3", username: 0123456789e1, password: 12e4, project_name: p}';
  const secure = { "/lab/secure.yaml": `clouds: {mine: {verify: no, auth: ${auth}}}` };
  for (const files of [secure, { ...secure, "/lab/clouds.yaml": "clouds: {}" }]) {
    const cloud = resolveCloud({ cloud: "mine", region: null }, around(files));
    expect(cloud.credential.values).toMatchObject({ username: "0123456789e1", password: "12e4" });
    expect(cloud.tls.verify).toBe(false);
    expect(() => resolveCloud({ cloud: "other", region: null }, around(files))).toThrow("has mine");
  }
});
