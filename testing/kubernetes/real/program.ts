import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Victim } from "../../chaos/victim.ts";
import { Zuul } from "../../openstack/zuul.ts";
import { SOURCE } from "../../program.ts";
import { freePort, startZooKeeper, type ZooKeeperServer } from "../../zookeeper/index.ts";
import { KubernetesSite } from "../site.ts";

const run = promisify(execFile);
const RBAC = "/apis/rbac.authorization.k8s.io/v1";
const ADMISSION = "/apis/admissionregistration.k8s.io/v1";

let site: KubernetesSite;
let zookeeper: ZooKeeperServer;
let zuul: Zuul;
let launcher: Victim;
let page: string;
/** A request whose nodes never get a token, made before the tests: its three attempts take half a minute each. */
let bare: string;
const folder = mkdtempSync(join(tmpdir(), "nodeyard-kubernetes-program-"));
const configFile = join(folder, "nodepool.yaml");

beforeAll(async () => {
  [site, zookeeper] = await Promise.all([KubernetesSite.start(), startZooKeeper()]);
  zuul = new Zuul(`127.0.0.1:${zookeeper.port}`);
  await Promise.all([withoutTokens(), ordinaryProject(), fullProject()]);
  writeFileSync(configFile, config());
  process.env.KUBECONFIG = kubeconfig();
  page = `127.0.0.1:${await freePort()}`;
  const words = ["--state", join(folder, "state"), "-c", configFile, "launcher", "--webapp", page];
  launcher = new Victim(words, { inside: false });
  if (!(await launcher.printed("the launcher runs"))) throw new Error(launcher.errors);
  bare = await zuul.ask(["bare"], "t1");
});
afterAll(async () => {
  await launcher?.signal("SIGKILL");
  await zuul?.kill();
  await zookeeper?.stop();
  await site?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const config = () => `zookeeper-servers: [{host: 127.0.0.1, port: ${zookeeper.port}}]
zookeeper-timeout: 20.0
labels: [{name: small}, {name: roomy}, {name: bare}, {name: shared}, {name: full}]
tenant-resource-limits: [{tenant-name: t2, max-servers: 1}]
providers:
  - name: kube
    driver: kubernetes
    context: test
    pools:
      - {name: main, max-servers: 2, labels: [{name: small, type: pod, image: i}]}
      - {name: other, labels: [{name: roomy, type: namespace}]}
  - name: secrets
    driver: kubernetes
    context: test
    token-lifetime: 0
    pools: [{name: bare, labels: [{name: bare, type: namespace}]}]
  - name: pods
    driver: openshiftpods
    context: narrow
    pools: [{name: shared, labels: [{name: shared, image: i}]}]
  - name: counted
    driver: openshiftpods
    context: test
    pools: [{name: full, labels: [{name: full, image: i}]}]
`;

/** Two contexts: `test`, which may do everything, and `narrow`, which may only make pods in one project. */
function kubeconfig(): string {
  const both = JSON.parse(readFileSync(site.kubeconfig("admin"), "utf8"));
  both.contexts.push({ name: "narrow", context: { cluster: "c", user: "narrow" } });
  both.users.push({ name: "narrow", user: { token: "launcher-token" } });
  const path = join(folder, "kubeconfig");
  writeFileSync(path, JSON.stringify(both));
  return path;
}

/** A cluster whose token controller gives the secrets of one pool's namespaces no tokens. */
async function withoutTokens(): Promise<void> {
  const secrets = { apiGroups: [""], apiVersions: ["v1"], operations: ["UPDATE"], resources: ["secrets"] };
  await site.api("POST", `${ADMISSION}/validatingadmissionpolicies`, {
    metadata: { name: "no-tokens" },
    spec: {
      matchConstraints: { resourceRules: [secrets] },
      validations: [{ expression: "!request.namespace.startsWith('bare-')" }],
    },
  });
  await site.api("POST", `${ADMISSION}/validatingadmissionpolicybindings`, {
    metadata: { name: "no-tokens" },
    spec: { policyName: "no-tokens", validationActions: ["Deny"] },
  });
  await site.project("bare-first");
  const path = "/api/v1/namespaces/bare-first/secrets";
  await site.api("POST", path, { metadata: { name: "s" } });
  const change = () => site.call("PATCH", `${path}/s`, "admin-token", { data: { a: "YQ==" } });
  await site.until("the policy is in force", async () => (await change()).status === 422);
}

async function ordinaryProject(): Promise<void> {
  await site.project("shared");
  const rules = [
    { apiGroups: [""], resources: ["pods"], verbs: ["create", "delete", "get", "list", "watch"] },
  ];
  await site.api("POST", `${RBAC}/namespaces/shared/roles`, { metadata: { name: "pods" }, rules });
  await site.api("POST", `${RBAC}/namespaces/shared/rolebindings`, {
    metadata: { name: "pods" },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "pods" },
    subjects: [{ kind: "User", name: "launcher" }],
  });
}

const QUOTA = "/api/v1/namespaces/full/resourcequotas";
/** A project with a quota that a launcher learns of only when the server refuses: of objects, not of amounts. */
async function fullProject(): Promise<void> {
  await site.project("full");
  await site.api("POST", QUOTA, { metadata: { name: "q" }, spec: { hard: { "count/pods": "0" } } });
  await site.until("the quota counts", async () => {
    const { status } = await site.api<{ status?: { hard?: object } }>("GET", `${QUOTA}/q`);
    return status?.hard !== undefined;
  });
}

async function nodeyard(...words: readonly string[]): Promise<string> {
  return (
    await run(process.execPath, ["--disable-warning=ExperimentalWarning", SOURCE, "-c", configFile, ...words])
  ).stdout;
}

interface Request {
  readonly state: string;
  readonly nodes: readonly string[];
}
const request = async (path: string) => (await zuul.record(path)) as unknown as Request;
const idOf = (path: string) => path.slice(path.lastIndexOf("/") + 1);

async function becomes(path: string, state: string): Promise<Request> {
  await site.until(`${path} is ${state}`, async () => (await request(path)).state === state, 300_000);
  return request(path);
}

/** Requests one node of a label and waits for it; nobody uses it yet. */
async function served(label: string, tenant = "t1"): Promise<Request & { readonly path: string }> {
  const path = await zuul.ask([label], tenant);
  return { ...(await becomes(path, "fulfilled")), path };
}

const pausedPools = async () => {
  const path = "/nodepool/components/pool";
  const pools = await Promise.all((await zuul.children(path)).map((one) => zuul.record(`${path}/${one}`)));
  return pools.filter(({ paused }) => paused).map(({ id }) => String(id));
};

test("with two nodes of two the pool is paused, and a third request gets its node when one is deleted (checks 26, 30)", async () => {
  const [one, two] = [await served("small"), await served("small")];
  expect(await zuul.record(`/nodepool/nodes/${one.nodes[0]}`)).toMatchObject({
    connection_type: "kubectl",
    interface_ip: "small",
    connection_port: { pod: "small" },
  });
  const third = await zuul.ask(["small"], "t1");
  await site.until("the pool is paused", async () =>
    (await pausedPools()).some((id) => /kube-main/.test(id)),
  );
  await site.until("its limit is explained", async () =>
    /It waits: .*(full|room|limit|at once)/i.test(await nodeyard("explain", idOf(third))),
  );
  expect(await request(third)).toMatchObject({ state: "requested" });
  await zuul.use(one.path, one.nodes);
  const last = await becomes(third, "fulfilled");
  await site.until(
    "the deleted node is gone",
    async () => !(await zuul.children("/nodepool/nodes")).includes(one.nodes[0]!),
  );
  await zuul.use(two.path, two.nodes);
  await zuul.use(third, last.nodes);
});

test("what a tenant's limit refuses stays requested (check 30)", async () => {
  const one = await served("roomy", "t2");
  const second = await zuul.ask(["roomy"], "t2");
  await site.until("the tenant's limit is explained", async () =>
    (await nodeyard("explain", idOf(second))).includes("tenant"),
  );
  expect((await request(second)).state).toBe("requested");
  await zuul.use(one.path, one.nodes);
  await zuul.use(second, (await becomes(second, "fulfilled")).nodes);
});

test("node lists show no token (checks 25, 32)", async () => {
  const one = await served("roomy");
  const record = await zuul.record(`/nodepool/nodes/${one.nodes[0]}`);
  expect(record).toMatchObject({
    connection_type: "namespace",
    interface_ip: null,
    cloud: "test",
    host_keys: [],
  });
  expect(record.connection_port).toEqual(record.ssh_port);
  expect(record.connection_port).not.toHaveProperty("pod");
  const { token } = record.connection_port as { readonly token: string };
  expect(token).toMatch(/^ey/);
  const said = await (await fetch(`http://${page}/node-list`)).text();
  const json = await fetch(`http://${page}/node-list`, { headers: { accept: "application/json" } });
  const rows = (await json.json()) as readonly { readonly id: string; readonly connection_port: unknown }[];
  expect(rows.find(({ id }) => id === one.nodes[0])).toMatchObject({ connection_port: "redacted" });
  const texts = [
    said,
    JSON.stringify(rows),
    await nodeyard("list"),
    await nodeyard("list", "--detail", "--json"),
  ];
  for (const text of texts) {
    expect(text).toContain(one.nodes[0]);
    expect(text).not.toContain(token.slice(0, 20));
  }
  await zuul.use(one.path, one.nodes);
});

test("explain says of a node that its job gets the launcher's own credential, as the launcher says at its start", async () => {
  expect(launcher.errors).toMatch(/jobs in project shared get the launcher's own credential/);
  const one = await served("shared");
  expect(await nodeyard("explain", one.nodes[0]!)).toContain(
    "jobs in project shared get the launcher's own credential: it may not create serviceaccounts",
  );
  await zuul.use(one.path, one.nodes);
});

test("beyond a quota that only the server knows, a node is aborted, and its request waits for room (check 34)", async () => {
  const asked = await zuul.ask(["full"], "t1");
  await site.until("the refusal is explained", async () =>
    /put back, to be planned again: .*exceeded quota/.test(await nodeyard("explain", idOf(asked))),
  );
  // It is no attempt of the three that a label has.
  expect(await nodeyard("explain", idOf(asked))).not.toContain("attempt=2");
  expect((await request(asked)).state).not.toBe("failed");
  await site.api("PATCH", `${QUOTA}/q`, { spec: { hard: { "count/pods": "5" } } });
  await zuul.use(asked, (await becomes(asked, "fulfilled")).nodes);
});

test("a node whose record was removed by hand: its namespace is deleted and counted as leaked (check 31)", async () => {
  const { nodes, path } = await served("roomy");
  const namespace = `other-${nodes[0]}`;
  await site.api("GET", `/api/v1/namespaces/${namespace}`);
  await zuul.erase(`/nodepool/nodes/${nodes[0]}`);
  await zuul.erase(path);
  await site.until(
    "the namespace is gone",
    async () => (await site.call("GET", `/api/v1/namespaces/${namespace}`, "admin-token")).status === 404,
  );
  const metrics = await (await fetch(`http://${page}/metrics`)).text();
  expect(metrics).toMatch(/nodeyard_launcher_leaked_total\{provider="kube",type="instance"\} 1\b/);
});

test("a token that never appears: three attempts, each in a new namespace, then the request fails (check 37)", async () => {
  await becomes(bare, "failed");
  const calls = site.audit().filter(({ uri }) => /\/namespaces\/bare-\d+/.test(uri));
  const made = calls.filter(
    ({ verb, uri, code }) => verb === "create" && /secrets$/.test(uri) && code === 201,
  );
  const deleted = calls.filter(({ verb, uri }) => verb === "delete" && /bare-\d+$/.test(uri));
  expect(made).toHaveLength(3);
  expect(deleted.length).toBeGreaterThanOrEqual(2);
  expect(await nodeyard("explain", idOf(bare))).toContain("got no token within 30 s");
});
