import { execFile } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { type Job, Zuul } from "../../openstack/zuul.ts";
import { SOURCE } from "../../program.ts";
import { startZooKeeper, type ZooKeeperServer } from "../../zookeeper/index.ts";
import { rendered, requireHelm } from "../helm.ts";
import { ProcessKubelet } from "../process-kubelet.ts";
import { KubernetesSite } from "../site.ts";

const run = promisify(execFile);
const JOB_MS = 300_000;

let site: KubernetesSite;
let zookeeper: ZooKeeperServer;
let crowd: Zuul;
let stream: Zuul;
let kubelet: ProcessKubelet;

beforeAll(async () => {
  requireHelm();
  [site, zookeeper] = await Promise.all([KubernetesSite.start({ nodes: 6 }), startZooKeeper()]);
  crowd = new Zuul(`127.0.0.1:${zookeeper.port}`);
  stream = new Zuul(`127.0.0.1:${zookeeper.port}`);
  // The strictest profile: what the chart makes has to meet it.
  const labels = { "pod-security.kubernetes.io/enforce": "restricted" };
  await site.api("POST", "/api/v1/namespaces", { metadata: { name: "ci", labels } });
  for (const name of ["a", "b", "c"])
    await site.api("POST", "/api/v1/persistentvolumes", {
      metadata: { name },
      spec: { capacity: { storage: "100Gi" }, accessModes: ["ReadWriteOnce"], hostPath: { path: "/none" } },
    });
  kubelet = new ProcessKubelet(site, "ci");
});
afterAll(async () => {
  await kubelet?.stop();
  await Promise.all([crowd?.kill(), stream?.kill()]);
  await zookeeper?.stop();
  await site?.stop();
});

/** An image that says what its build saw: the host, and how many files of a service account. */
const BUILD =
  'echo "$(hostname) $(ls /run/secrets/kubernetes.io/serviceaccount/ | wc -l)" >"$DIB_IMAGE_FILENAME.raw"';

const config = () => `zookeeper-servers: [{host: 127.0.0.1, port: ${zookeeper.port}}]
zookeeper-timeout: 8.0
images-dir: /var/lib/nodeyard/images
build-log-dir: /var/lib/nodeyard/logs
labels: [{name: small}, {name: huge}]
diskimages:
  - {name: tiny, formats: [raw], build-command: [/bin/sh, -c, '${BUILD}']}
providers:
  - name: images
    driver: fake
    cloud: c
    diskimages: [{name: tiny}]
    pools: []
    fake: {images: {folder: /var/lib/nodeyard/cloud, formats: [raw]}}
  - name: kube
    driver: kubernetes
    schedule-timeout: 20
    pools:
      - name: main
        max-servers: 15
        labels:
          - {name: small, type: pod, image: i, cpu: 1, memory: 64}
          - {name: huge, type: pod, image: i, cpu: 64, memory: 64}
`;

/** Writes what the chart makes of these values where kubectl finds it. */
function manifests(values: object): string {
  const path = join(site.folder, "chart.json");
  const items = rendered(values, "ci").filter(({ kind }) => kind !== "ServiceMonitor");
  writeFileSync(path, JSON.stringify({ apiVersion: "v1", kind: "List", items }));
  return path;
}

const kubectl = (...words: readonly string[]) => site.kubectl(["--namespace", "ci", ...words]);

async function rolledOut(role: string): Promise<void> {
  try {
    await kubectl("rollout", "status", `statefulset/yard-${role}`, "--timeout=300s");
  } catch (error) {
    const log = kubelet.log(`yard-${role}-0`).slice(-2_000);
    throw new Error([`yard-${role} is not ready`, ...kubelet.problems, log].join("\n"), { cause: error });
  }
}

async function nodeyard(...words: readonly string[]): Promise<string> {
  const path = join(site.folder, "client.yaml");
  writeFileSync(path, config());
  const all = ["--disable-warning=ExperimentalWarning", SOURCE, "-c", path, ...words];
  return (await run(process.execPath, all)).stdout;
}

test("the API server accepts everything that the chart can make", async () => {
  const values = {
    config: config(),
    rbac: { create: true },
    files: { zookeeper: { secret: { secretName: "zookeeper-client" } } },
    webappTokenSecret: "webapp",
    builder: { privileged: true, storageClass: "fast" },
    networkPolicy: { enabled: true },
  };
  const said = await kubectl(
    "apply",
    "--server-side",
    "--dry-run=server",
    "--validate=strict",
    "-f",
    manifests(values),
  );
  expect(said.match(/serverside-applied/g)).toHaveLength(13);
});

test("launchers and a builder by the chart, with its service account: a rolling update loses no request", async () => {
  const values = { config: config(), rbac: { create: true } };
  await kubectl("apply", "--server-side", "--validate=strict", "-f", manifests(values));
  const isUp = () => Promise.all(["launcher", "builder"].map(rolledOut));
  await isUp();

  const before = await stream.jobs(Array(6).fill(["small"]), JOB_MS);
  // A crowd that waits in line for 15 places all the time, and beside it some that come and go.
  const jobs: Promise<readonly Job[]>[] = [crowd.jobs(Array(60).fill(["small"]), JOB_MS)];
  let isOver = false;
  const waves = (async () => {
    const ended: Job[] = [];
    while (!isOver) ended.push(...(await stream.jobs(Array(3).fill(["small"]), JOB_MS)));
    return ended;
  })();
  jobs.push(waves);
  await site.until(
    "some are served",
    async () => (await crowd.asked()).length === 60 && (await left()) <= 50,
  );
  try {
    await kubectl("rollout", "restart", "statefulset/yard-launcher");
    await isUp();
  } finally {
    isOver = true;
  }
  await waves;
  const after = await stream.jobs(Array(6).fill(["small"]), JOB_MS);

  const all = [before, ...(await Promise.all(jobs)), after].flat();
  expect(all.filter(({ state }) => state !== "used")).toEqual([]);
  const nodes = all.flatMap(({ nodes }) => nodes);
  expect(new Set(nodes.map(({ external_id: id }) => id)).size).toBe(all.length);
  expect(servers(after).filter((one) => servers(before).includes(one))).toEqual([]);
  expect(kubelet.problems).toEqual([]);
  const account = "system:serviceaccount:ci:yard-launcher";
  const calls = site.audit().filter(({ user }) => user === account);
  expect(calls.length).toBeGreaterThan(all.length * 5);
  expect(calls.filter(({ code }) => code === 401 || code === 403)).toEqual([]);
});

interface Image {
  readonly id: string;
  readonly image: string;
  readonly state: string;
  readonly builder?: string;
}

test("the chart's builder builds and uploads an image, and has it again when its pod is another", async () => {
  const list = async (command: string) =>
    (JSON.parse(await nodeyard(command, "--json")) as readonly Image[]).filter(
      ({ image, state }) => image === "tiny" && state === "ready",
    );
  await site.until("the image is uploaded", async () => (await list("image-list")).length === 1);
  const before = await list("dib-image-list");
  expect(before).toMatchObject([{ builder: "yard-builder-0" }]);
  const volume = kubelet.volume("yard-builder-0", "state");
  const images = () => readdirSync(join(volume, "images")).filter((name) => name.endsWith(".raw"));
  const [image] = images();
  // A builder needs no cluster, so its pod has no credential that a build could read.
  expect(readFileSync(join(volume, "images", image!), "utf8")).toBe("yard-builder-0 0\n");
  expect(readdirSync(join(volume, "cloud")).filter((name) => name.endsWith(".image"))).toHaveLength(1);

  const starts = () => kubelet.log("yard-builder-0").match(/the builder runs/g)?.length ?? 0;
  const former = starts();
  await kubectl("rollout", "restart", "statefulset/yard-builder");
  await rolledOut("builder");
  // Its log may come after its readiness.
  await site.until("the builder runs again", async () => starts() === former + 1);
  expect(await list("dib-image-list")).toMatchObject([{ id: before[0]!.id, builder: "yard-builder-0" }]);
  expect(images()).toEqual([image]);
  await nodeyard("image-build", "tiny");
  await site.until("it builds again", async () => (await list("image-list")).length === 2);
  expect(kubelet.problems).toEqual([]);
});

test("a cluster without room: its scheduler's words are what explain gives as the reason", async () => {
  const zuul = new Zuul(`127.0.0.1:${zookeeper.port}`);
  onTestFinished(() => zuul.kill());
  const waiting = zuul.jobs([["huge"]], 30_000);
  await site.until("the refusal is explained", async () => {
    const [request] = await zuul.asked();
    if (request === undefined) return false;
    const said = await nodeyard("explain", request);
    return /no room|capacity/i.test(said) && said.includes("Insufficient cpu");
  });
  // It waits, and is neither declined nor served.
  expect(await waiting).toMatchObject([{ state: expect.stringMatching(/^still (requested|pending)$/) }]);
});

const servers = (jobs: readonly Job[]) =>
  jobs.flatMap(({ nodes }) => nodes.map(({ launcher }) => String(launcher)));

/** Requests that have not got their nodes yet; before the first was made, there is no folder of them. */
async function left(): Promise<number> {
  return (await crowd.children("/nodepool/requests").catch(() => [])).length;
}
