import { expect, test } from "vitest";
import { type KubeFiles, type PluginCommand, resolveAccess } from "../src/client/index.ts";
import { thisHost } from "../src/index.ts";

const { signal } = new AbortController();
const b64 = (text: string) => Buffer.from(text).toString("base64");

/** A host with these files; `answer` is what its credential plugin prints. */
function host(files: Record<string, string>, { env = {}, answer = "" } = {}) {
  const calls: PluginCommand[] = [];
  const around: KubeFiles = {
    env,
    home: "/home/ci",
    read: (path) => files[path],
    proxy: () => null,
    run: async (command) => {
      calls.push(command);
      return answer;
    },
  };
  return { around, calls };
}

const config = (user: object, cluster: object = {}) =>
  JSON.stringify({
    "current-context": "one",
    contexts: [
      { name: "one", context: { cluster: "c", user: "u" } },
      { name: "two", context: { cluster: "c", user: "v" } },
    ],
    clusters: [{ name: "c", cluster: { server: "https://kube:6443/", ...cluster } }],
    users: [
      { name: "u", user },
      { name: "v", user: { username: "a", password: "b" } },
    ],
  });

const PATH = "/home/ci/.kube/config";

test("tokens, files beside the kubeconfig, certificates, a proxy and another server name", async () => {
  const text = config(
    { tokenFile: "token", "client-certificate": "me.crt", "client-key-data": b64("KEY") },
    { "certificate-authority": "/ca.crt", "proxy-url": "socks5://p:1080", "tls-server-name": "kube.example" },
  );
  const files = {
    [PATH]: text,
    "/home/ci/.kube/token": "first\n",
    "/home/ci/.kube/me.crt": "CERT",
    "/ca.crt": "CA",
  };
  const { around } = host(files);
  expect(await resolveAccess(null, around, signal)).toEqual({
    server: "https://kube:6443",
    route: {
      verify: true,
      ca: "CA",
      cert: "CERT",
      key: "KEY",
      serverName: "kube.example",
      proxy: "socks5://p:1080",
    },
    authorization: "Bearer first",
    expires: null,
  });
  // Replaced in place.
  files["/home/ci/.kube/token"] = "second";
  expect((await resolveAccess("one", around, signal)).authorization).toBe("Bearer second");
  expect((await resolveAccess("two", around, signal)).authorization).toBe(`Basic ${b64("a:b")}`);
});

test("of several files the first that has a name counts", async () => {
  const env = { KUBECONFIG: "/a:/missing:/b" };
  const users = JSON.stringify({ users: [{ name: "u", user: { token: "mine" } }] });
  const { around } = host({ "/a": users, "/b": config({ token: "theirs" }) }, { env });
  expect((await resolveAccess(null, around, signal)).authorization).toBe("Bearer mine");
});

test("a credential plugin, with its arguments and the validity of its answer", async () => {
  const exec = {
    apiVersion: "client.authentication.k8s.io/v1",
    command: "./login",
    args: ["x"],
    env: [{ name: "A", value: "b" }],
  };
  const status = { token: "t", expirationTimestamp: "2026-01-01T00:00:00Z" };
  const { around, calls } = host({ [PATH]: config({ exec }) }, { answer: JSON.stringify({ status }) });
  const { authorization, expires } = await resolveAccess(null, around, signal);
  expect([authorization, expires]).toEqual(["Bearer t", Date.parse("2026-01-01T00:00:00Z")]);
  expect(calls).toMatchObject([{ command: "/home/ci/.kube/./login", args: ["x"], env: { A: "b" } }]);
  const info = {
    apiVersion: "client.authentication.k8s.io/v1",
    kind: "ExecCredential",
    spec: { interactive: false },
  };
  expect(JSON.parse(calls[0]!.env.KUBERNETES_EXEC_INFO!)).toEqual(info);
});

test("a plugin's output is never in an error", async () => {
  const { around } = host({ [PATH]: config({ exec: { command: "login" } }) }, { answer: "secret-token" });
  const error = await resolveAccess(null, around, signal).catch((thrown: Error) => thrown.message);
  expect(error).toBe("the credential plugin login failed: its answer is not JSON");
});

test("a plugin that is not installed gives its hint, and a file that does not exist its path", async () => {
  const exec = { command: "nodeyard-no-such-plugin", installHint: "Get it from example.org." };
  const { around } = host({ [PATH]: config({ exec }) });
  await expect(resolveAccess(null, { ...around, run: thisHost.files.run }, signal)).rejects.toThrow(
    "nodeyard-no-such-plugin failed: it is not installed. Get it from example.org.",
  );
  const { around: other } = host({ [PATH]: config({}) }, { env: { KUBECONFIG: "/srv/kube" } });
  await expect(resolveAccess(null, other, signal)).rejects.toThrow("there is no kubeconfig /srv/kube");
});

test("in a cluster, where there is no kubeconfig; with one that lacks the context it is an error", async () => {
  const folder = "/var/run/secrets/kubernetes.io/serviceaccount";
  const files = { [`${folder}/token`]: "pod\n", [`${folder}/ca.crt`]: "CA" };
  const env = { KUBERNETES_SERVICE_HOST: "fd00::1", KUBERNETES_SERVICE_PORT: "443" };
  const { around } = host(files, { env });
  expect(await resolveAccess(null, around, signal)).toMatchObject({
    server: "https://[fd00::1]:443",
    authorization: "Bearer pod",
    route: { ca: "CA", verify: true },
  });
  await expect(resolveAccess("ci", around, signal)).rejects.toThrow("there is no kubeconfig");
  const { around: other } = host({ [PATH]: config({}) });
  await expect(resolveAccess("ci", other, signal)).rejects.toThrow("has no context ci; it has one, two");
});

test("tokens, passwords and names without quotes are text, as YAML 1.1 writes them", async () => {
  const text = (user: string) => `
current-context: 1
contexts: [{name: 1, context: {cluster: 2, user: 3}}]
clusters: [{name: 2, cluster: {server: "https://kube:6443"}}]
users: [{name: 3, user: ${user}}]
`;
  const sent = async (user: string) =>
    (await resolveAccess(null, host({ [PATH]: text(user) }).around, signal)).authorization;
  expect(await sent("{token: 123456}")).toBe("Bearer 123456");
  expect(await sent("{token: 12e4}")).toBe("Bearer 12e4");
  expect(await sent("{username: 7, password: 0123e1}")).toBe(`Basic ${b64("7:0123e1")}`);
  await expect(sent("{token: [a]}")).rejects.toThrow(/token of user 3/);
});

test.each(["auth-provider", "as", "as-uid", "as-groups", "as-user-extra"])(
  "a user with %s is refused by that name, instead of requests with other rights",
  async (key) => {
    const { around } = host({ [PATH]: config({ token: "t", [key]: { name: "oidc" } }) });
    await expect(resolveAccess(null, around, signal)).rejects.toThrow(
      new RegExp(`^user u of the kubeconfig has ${key}, which Nodeyard does not support`),
    );
  },
);
