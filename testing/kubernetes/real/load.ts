import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Victim } from "../../chaos/victim.ts";
import { type Job, Zuul } from "../../openstack/zuul.ts";
import { patient } from "../../patience.ts";
import { SOURCE } from "../../program.ts";
import { startZooKeeper, type ZooKeeperServer } from "../../zookeeper/index.ts";
import { ROLES } from "../roles.ts";
import { KubernetesSite } from "../site.ts";

const run = promisify(execFile);
const PODS = Number(process.env.NODEYARD_KUBERNETES_PODS || 1_000);
const JOB_MS = 1_500_000;
/** Calls for a pod and its life: namespace, account, binding, pod, token, deletion. */
const CALLS = 6;

let site: KubernetesSite;
let zookeeper: ZooKeeperServer;
let zuul: Zuul;
const folder = mkdtempSync(join(tmpdir(), "nodeyard-kubernetes-load-"));
const launchers: Victim[] = [];

beforeAll(async () => {
  [site, zookeeper] = await Promise.all([KubernetesSite.start({ nodes: 4 }), startZooKeeper()]);
  zuul = new Zuul(`127.0.0.1:${zookeeper.port}`);
  for (const role of ROLES) await site.api("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", role);
  await site.api("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {
    metadata: { name: "launcher" },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "nodeyard-launcher" },
    subjects: [{ kind: "User", name: "launcher" }],
  });
});
afterAll(async () => {
  for (const launcher of launchers) await launcher.signal("SIGKILL");
  await zuul?.kill();
  await zookeeper?.stop();
  await site?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const configFile = join(folder, "nodepool.yaml");

/** The cluster has room for 16 pods of a core at once; a tenth of them is evicted while it is used. */
function configure(): void {
  const label = (name: string, more: string) =>
    `          - {name: ${name}, type: pod, image: i, cpu: 1, memory: 64${more}}`;
  writeFileSync(
    configFile,
    `zookeeper-servers: [{host: 127.0.0.1, port: ${zookeeper.port}}]
zookeeper-timeout: 8.0
labels: [{name: small}, {name: shaky}]
providers:
  - name: kube
    driver: kubernetes
    context: test
    launch-retries: 5
    pools:
      - name: main
        max-servers: 100
        labels:
${label("small", "")}
${label("shaky", ", annotations: {behaviour: evicted}")}
`,
  );
}

async function launch(name: string): Promise<Victim> {
  process.env.KUBECONFIG = site.kubeconfig("launcher");
  const words = ["--state", join(folder, name), "-c", configFile, "launcher", "--no-webapp"];
  const launcher = new Victim(words, { inside: false });
  launchers.push(launcher);
  if (!(await launcher.printed("the launcher runs"))) throw new Error(launcher.errors);
  return launcher;
}

test(
  `${PODS} pods at once: all served, none doubled, none left, six calls each`,
  async () => {
    await site.addNodes(21, 4);
    configure();
    const first = await launch("a");
    await launch("b");
    const labels = Array.from({ length: PODS }, (_, index) => [index % 10 === 0 ? "shaky" : "small"]);
    let isOver = false;
    const work = zuul.jobs(labels, JOB_MS).finally(() => {
      isOver = true;
    });
    /** Requests go when their jobs have ended; before the first was made, there is no folder of them. */
    const left = async () => (await zuul.children("/nodepool/requests").catch(() => labels)).length;
    const passes = (most: number) =>
      site.until(`${most} requests left`, async () => isOver || (await left()) <= most, JOB_MS);

    await passes(PODS * 0.9);
    await site.kill("kube-apiserver");
    await site.restart("kube-apiserver");
    await passes(PODS * 0.7);
    await site.compact();
    await first.signal("SIGKILL");
    await launch("a");
    await passes(PODS * 0.4);
    await site.kill("kube-apiserver");
    await site.compact();
    await site.restart("kube-apiserver");

    const jobs: readonly Job[] = await work;
    expect(jobs.filter(({ state }) => state !== "used").map(({ state, error }) => error ?? state)).toEqual(
      [],
    );
    const places = jobs.flatMap(({ nodes }) => nodes.map((node) => String(node.external_id)));
    expect(new Set(places).size).toBe(PODS);

    const list = await run(process.execPath, [
      "--disable-warning=ExperimentalWarning",
      SOURCE,
      "-c",
      configFile,
      "list",
    ]);
    expect(list.stdout).not.toContain("eyJ");
    await site.until("all namespaces are gone", async () => {
      const { items } = await site.api<{ items: { metadata: { labels?: object } }[] }>(
        "GET",
        "/api/v1/namespaces",
      );
      return items.every(({ metadata }) => !("nodeyard_installation" in (metadata.labels ?? {})));
    });
    // A server that has just begun refuses what it has not read the roles of yet.
    const calls = site
      .audit()
      .filter(
        ({ user, verb, code }) => user === "launcher" && !["watch", "list"].includes(verb) && code !== 403,
      );
    const pods = new Set(
      calls
        .filter(({ verb, uri, code }) => verb === "create" && uri.endsWith("/pods") && code === 201)
        .map(({ uri }) => uri),
    );
    const counted = Object.entries(
      Object.groupBy(
        calls,
        ({ verb, uri, code }) =>
          `${verb} ${uri.replace(/main-\d+(-n[0-9a-f]+)?/g, "*").replace(/\?.*/, "")} ${code}`,
      ),
    );
    console.log(
      `${calls.length} calls for ${pods.size} pods`,
      Object.fromEntries(counted.map(([key, all]) => [key, all!.length])),
    );
    // A namespace of whose deletion nothing was heard for ten seconds is looked at, and deleted again: more often the busier the machine is.
    const isNamespace = (uri: string) => /^\/api\/v1\/namespaces\/[^/?]+(\?|$)/.test(uri);
    const deleted = new Set<string>();
    const counting = calls.filter(({ verb, uri }) => {
      if (verb === "get") return !isNamespace(uri);
      if (verb !== "delete" || !isNamespace(uri)) return true;
      const isFirst = !deleted.has(uri);
      deleted.add(uri);
      return isFirst;
    });
    expect(counting.length / pods.size).toBeLessThanOrEqual(CALLS + 0.5);
  },
  patient(1_800_000),
);
