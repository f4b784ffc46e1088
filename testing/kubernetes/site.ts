import { type ChildProcess, execFile, execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { Agent, request } from "undici";
import { patient } from "../patience.ts";
import { requireTools, skip } from "../skipped.ts";
import { freePort } from "../zookeeper/index.ts";
import { STAGES } from "./stages.ts";

const run = promisify(execFile);
const PROGRAMS = process.env.NODEYARD_KUBERNETES ?? join(homedir(), ".cache/nodeyard/kubernetes");
const NEEDED = ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"];
/** What is needed of the real controllers, beside that of namespaces. */
const CONTROLLERS = [
  "serviceaccount-controller",
  "serviceaccount-token-controller",
  "root-ca-certificate-publisher-controller",
  "garbage-collector-controller",
  "resourcequota-controller",
  "clusterrole-aggregation-controller",
  "statefulset-controller",
  "persistentvolume-binder-controller",
  // Removes the taint of new nodes.
  "node-lifecycle-controller",
];
const READY_MS = patient(240_000);
/** What namespaces of tests have in them; pods first, since others belong to them. */
const CONTENT = [
  "pods",
  "serviceaccounts",
  "secrets",
  "configmaps",
  "events",
  "resourcequotas",
  "limitranges",
  "/apis/rbac.authorization.k8s.io/v1/namespaces/*/rolebindings",
  "/apis/rbac.authorization.k8s.io/v1/namespaces/*/roles",
];

interface Namespace {
  readonly name: string;
  readonly uid: string;
  readonly deletionTimestamp?: string;
}

/** `admin` may do everything; the others only what a test binds to them. */
export type User = "admin" | "launcher" | "stranger";

type Program = "etcd" | "kube-apiserver" | "kube-controller-manager" | "kube-scheduler" | "kwok";

const living = new Set<ChildProcess>();
process.on("exit", () => {
  for (const child of living) child.kill("SIGKILL");
});

/** Why no cluster can be started here; undefined: one can. */
export function missingCluster(): string | undefined {
  const missing = NEEDED.find((program) => !existsSync(join(PROGRAMS, program)));
  if (missing === undefined) return requireTools("tests of Kubernetes", "etcd");
  return skip(`tests of Kubernetes need ${join(PROGRAMS, missing)}. Run: testing/kubernetes/build.sh`);
}

/**
 * A real control plane on free ports of loopback: etcd, kube-apiserver with RBAC, service-account tokens and an audit log, the controllers
 * and the scheduler. kwok plays the kubelets: pods have states, and nothing runs in them.
 */
export class KubernetesSite {
  readonly folder: string;
  readonly server: string;
  readonly #etcdPort: number;
  readonly #words: ReadonlyMap<Program, readonly string[]>;
  /** Namespaces that are being erased, by uid. */
  readonly #erasing = new Map<string, Promise<void>>();
  readonly #children = new Map<Program, ChildProcess>();
  #agent: Agent | undefined;

  private constructor(folder: string, ports: readonly number[], hasty: boolean) {
    const [etcd, peer, server, manager, scheduler] = ports as [number, number, number, number, number];
    this.folder = folder;
    this.#etcdPort = etcd;
    this.server = `https://127.0.0.1:${server}`;
    const at = (name: string) => join(folder, name);
    const asAdmin = `--kubeconfig=${at("admin.kubeconfig")}`;
    const own = (port: number) => [
      "--bind-address=127.0.0.1",
      `--secure-port=${port}`,
      "--leader-elect=false",
    ];
    const fast = ["--kube-api-qps=1000", "--kube-api-burst=2000"];
    this.#words = new Map<Program, readonly string[]>([
      [
        "etcd",
        [
          "--data-dir",
          at("etcd"),
          "--listen-client-urls",
          `http://127.0.0.1:${etcd}`,
          "--advertise-client-urls",
          `http://127.0.0.1:${etcd}`,
          "--listen-peer-urls",
          `http://127.0.0.1:${peer}`,
          "--unsafe-no-fsync",
        ],
      ],
      [
        "kube-apiserver",
        [
          `--etcd-servers=http://127.0.0.1:${etcd}`,
          `--cert-dir=${at("certs")}`,
          "--bind-address=127.0.0.1",
          `--secure-port=${server}`,
          "--service-cluster-ip-range=10.0.0.0/24",
          `--service-account-key-file=${at("sa.key")}`,
          `--service-account-signing-key-file=${at("sa.key")}`,
          "--service-account-issuer=https://kubernetes.default.svc",
          "--authorization-mode=RBAC",
          `--client-ca-file=${at("clients.crt")}`,
          `--token-auth-file=${at("tokens.csv")}`,
          "--allow-privileged=true",
          `--audit-policy-file=${at("audit.yaml")}`,
          `--audit-log-path=${at("audit.log")}`,
        ],
      ],
      [
        "kube-controller-manager",
        [
          asAdmin,
          ...own(manager),
          ...fast,
          `--service-account-private-key-file=${at("sa.key")}`,
          `--root-ca-file=${at("certs/apiserver.crt")}`,
          `--controllers=${[...CONTROLLERS, ...(hasty ? [] : ["namespace-controller"])].join(",")}`,
          "--concurrent-namespace-syncs=30",
          // kwok's nodes have no heartbeat.
          "--node-monitor-grace-period=24h",
        ],
      ],
      ["kube-scheduler", [asAdmin, ...own(scheduler), ...fast]],
      ["kwok", [asAdmin, "--manage-all-nodes=true", "--config", at("stages.yaml")]],
    ]);
  }

  /**
   * Ready in seconds. `nodes`: how many machines of 4 cores, 8 GiB and 110 pods it has. `hasty`: namespaces that are deleted go at once,
   * without the five seconds that their controller lets pass. That one does not run then: on a busy machine it may still be deleting by name
   * what was in a namespace when the next of that name is there.
   */
  static async start({
    nodes = 3,
    hasty = false,
  }: {
    readonly nodes?: number;
    readonly hasty?: boolean;
  } = {}): Promise<KubernetesSite> {
    const folder = mkdtempSync(join(tmpdir(), "nodeyard-kubernetes-"));
    const ports = await Promise.all(Array.from({ length: 5 }, () => freePort()));
    const site = new KubernetesSite(folder, ports, hasty);
    try {
      await site.#begin(nodes);
      if (hasty) void site.#hasten();
      return site;
    } catch (error) {
      await site.stop();
      throw error;
    }
  }

  /** A kubeconfig of one user, for whoever reads such a file. */
  kubeconfig(user: User): string {
    return join(this.folder, `${user}.kubeconfig`);
  }

  get ca(): string {
    return readFileSync(join(this.folder, "certs/apiserver.crt"), "utf8");
  }

  /** A call as `admin`; rejects with the answer's text unless it is a success. */
  async api<T>(method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE", path: string, body?: object): Promise<T> {
    const { status, text } = await this.call(method, path, "admin-token", body);
    if (status >= 300) throw new Error(`${method} ${path}: ${status} ${text}`);
    return JSON.parse(text) as T;
  }

  /** A call with any token. */
  async call(
    method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE",
    path: string,
    token: string,
    body?: object,
  ): Promise<{ readonly status: number; readonly text: string }> {
    this.#agent ??= new Agent({ connect: { ca: this.ca } });
    const type = method === "PATCH" ? "application/merge-patch+json" : "application/json";
    const headers = {
      authorization: `Bearer ${token}`,
      ...(body === undefined ? {} : { "content-type": type }),
    };
    const answer = await request(`${this.server}${path}`, {
      dispatcher: this.#agent,
      method,
      headers,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: answer.statusCode, text: await answer.body.text() };
  }

  /** kubectl, as `admin` or with a kubeconfig of the test's own. Rejects when it fails. */
  async kubectl(words: readonly string[], kubeconfig = this.kubeconfig("admin")): Promise<string> {
    const env = { ...process.env, KUBECONFIG: kubeconfig };
    return (await run("kubectl", [...words], { env })).stdout;
  }

  /** Lines of the audit log, each a request that the server has answered. */
  audit(): readonly {
    readonly user: string;
    readonly verb: string;
    readonly uri: string;
    readonly code: number;
  }[] {
    return readFileSync(join(this.folder, "audit.log"), "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line))
      .map(({ user, verb, requestURI, responseStatus }) => ({
        user: user.username,
        verb,
        uri: requestURI,
        code: responseStatus?.code ?? 0,
      }));
  }

  /** Makes etcd forget all versions but the present one: watches that resume from an older one are answered 410. */
  async compact(): Promise<void> {
    const ask = async (path: string, body: object) => {
      const url = `http://127.0.0.1:${this.#etcdPort}/v3/${path}`;
      const answer = await request(url, { method: "POST", body: JSON.stringify(body) });
      const text = await answer.body.text();
      if (answer.statusCode !== 200) throw new Error(`${path}: ${text}`);
      return JSON.parse(text) as { header: { revision: string } };
    };
    const { header } = await ask("maintenance/status", {});
    await ask("kv/compaction", { revision: header.revision, physical: true });
  }

  /** A namespace that exists, with its default service account. */
  async project(name: string): Promise<void> {
    await this.api("POST", "/api/v1/namespaces", { metadata: { name } });
    const path = `/api/v1/namespaces/${name}/serviceaccounts/default`;
    await this.until(path, async () => (await this.call("GET", path, "admin-token")).status === 200);
  }

  /** Deletes all namespaces that a test made, with what is in them. For a hasty site. */
  async empty(): Promise<void> {
    const made = (await this.#namespaces()).filter(({ name }) => !/^(default|kube-)/.test(name));
    await Promise.all(made.map((one) => this.#erase(one)));
  }

  /** Waits until every namespace that is being deleted is gone. */
  settled(): Promise<void> {
    return this.until("namespaces that are being deleted are gone", async () =>
      (await this.#namespaces()).every(({ deletionTimestamp }) => deletionTimestamp === undefined),
    );
  }

  async #namespaces(): Promise<readonly Namespace[]> {
    const { items } = await this.api<{ items: { metadata: Namespace }[] }>("GET", "/api/v1/namespaces");
    return items.map(({ metadata }) => metadata);
  }

  async #hasten(): Promise<void> {
    while (this.#children.size > 0) {
      try {
        const ending = (await this.#namespaces()).filter((one) => one.deletionTimestamp !== undefined);
        await Promise.all(ending.map((one) => this.#erase(one)));
      } catch {
        // The server is away: again, when it is back.
      }
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }

  /** The work of the namespace controller. Another namespace of the same name, which a test has made meanwhile, is left alone. */
  async #erase(namespace: Namespace): Promise<void> {
    const { uid } = namespace;
    // Once at a time: a second one could go on after the first, and delete what a test has put into the next namespace of that name.
    const work =
      this.#erasing.get(uid) ?? this.#eraseOnce(namespace).finally(() => this.#erasing.delete(uid));
    this.#erasing.set(uid, work);
    return work;
  }

  async #eraseOnce({ name, uid }: Namespace): Promise<void> {
    const path = `/api/v1/namespaces/${name}`;
    const now = { gracePeriodSeconds: 0 };
    const same = await this.call("DELETE", path, "admin-token", { preconditions: { uid } });
    if (same.status === 404 || (same.status === 409 && same.text.includes("UID in precondition"))) return;
    for (const kind of CONTENT) {
      const collection = kind.startsWith("/") ? kind.replace("*", name) : `${path}/${kind}`;
      await this.call("DELETE", collection, "admin-token", now);
    }
    const body = { metadata: { name, uid }, spec: { finalizers: [] } };
    await this.call("PUT", `${path}/finalize`, "admin-token", body);
    await this.until(`${name} is gone`, async () => {
      const { status, text } = await this.call("GET", path, "admin-token");
      return status === 404 || (status === 200 && JSON.parse(text).metadata.uid !== uid);
    });
  }

  async addNodes(count: number, from = 0): Promise<void> {
    const capacity = { cpu: "4", memory: "8Gi", "ephemeral-storage": "100G", pods: "110" };
    for (let index = from; index < from + count; index++) {
      const metadata = { name: `node-${index}`, annotations: { "kwok.x-k8s.io/node": "fake" } };
      const node = { metadata, status: { capacity, allocatable: capacity } };
      const { status, text } = await this.call("POST", "/api/v1/nodes", "admin-token", node);
      // 409: there from a test's first try.
      if (status !== 201 && status !== 409) throw new Error(`node-${index}: ${status} ${text}`);
    }
  }

  async kill(program: Program): Promise<void> {
    const child = this.#children.get(program)!;
    const ended = new Promise((resolve) => child.once("close", resolve));
    child.kill("SIGKILL");
    await ended;
  }

  async restart(program: Program): Promise<void> {
    if (program === "kube-apiserver") {
      // Its certificate may be another by then.
      await this.#agent?.destroy();
      this.#agent = undefined;
    }
    this.#spawn(program);
    if (program === "kube-apiserver") await this.#ready();
  }

  async stop(): Promise<void> {
    // Clients first: what they are still told then matters to nobody.
    const children = [...this.#children.values()].reverse().filter((child) => living.has(child));
    this.#children.clear();
    await Promise.all(
      children.map(async (child) => {
        const ended = new Promise((resolve) => child.once("close", resolve));
        child.kill("SIGKILL");
        await ended;
      }),
    );
    await this.#agent?.destroy();
    rmSync(this.folder, { recursive: true, force: true });
  }

  async #begin(nodes: number): Promise<void> {
    const at = (name: string) => join(this.folder, name);
    mkdirSync(at("certs"));
    execFileSync("openssl", ["genrsa", "-out", at("sa.key"), "2048"], { stdio: "ignore" });
    const authority = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=clients"];
    const files = ["-keyout", at("clients.key"), "-out", at("clients.crt")];
    execFileSync("openssl", [...authority, ...files], { stdio: "ignore" });
    const groups = { admin: '"system:masters"', launcher: "", stranger: "" };
    const lines = Object.entries(groups).map(([user, group]) => `${user}-token,${user},${user},${group}`);
    writeFileSync(at("tokens.csv"), `${lines.join("\n")}\n`);
    writeFileSync(
      at("audit.yaml"),
      "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata}]\n",
    );
    writeFileSync(at("stages.yaml"), STAGES.map((one) => JSON.stringify(one)).join("\n---\n"));
    this.#spawn("etcd");
    this.#spawn("kube-apiserver");
    await this.#ready();
    for (const user of Object.keys(groups))
      writeFileSync(this.kubeconfig(user as User), this.configFor(`${user}-token`));
    for (const program of ["kube-controller-manager", "kube-scheduler", "kwok"] as const)
      this.#spawn(program);
    await this.addNodes(nodes);
    await this.until("default service account", async () => {
      const { status } = await this.call(
        "GET",
        "/api/v1/namespaces/default/serviceaccounts/default",
        "admin-token",
      );
      return status === 200;
    });
    await this.until("nodes", async () => {
      const list = await this.api<{
        items: { status: { conditions?: { type: string; status: string }[] } }[];
      }>("GET", "/api/v1/nodes");
      const isUp = (type: { type: string; status: string }) =>
        type.type === "Ready" && type.status === "True";
      return list.items.every(({ status }) => status.conditions?.some(isUp));
    });
  }

  /** A kubeconfig with one context, `test`. */
  configFor(token: string): string {
    const ca = Buffer.from(this.ca).toString("base64");
    return JSON.stringify({
      apiVersion: "v1",
      kind: "Config",
      "current-context": "test",
      contexts: [{ name: "test", context: { cluster: "c", user: "u" } }],
      clusters: [{ name: "c", cluster: { server: this.server, "certificate-authority-data": ca } }],
      users: [{ name: "u", user: { token } }],
    });
  }

  /** Waits for a condition, by looking. */
  async until(what: string, holds: () => Promise<boolean> | boolean, limitMs = READY_MS): Promise<void> {
    const began = Date.now();
    while (!(await holds())) {
      if (Date.now() - began > limitMs) throw new Error(`waited ${limitMs} ms for ${what}`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }

  async #ready(): Promise<void> {
    await this.until("kube-apiserver", async () => {
      for (const [program, child] of this.#children)
        if (!living.has(child)) throw new Error(`${program} has ended: ${this.#lastLines(program)}`);
      if (!existsSync(join(this.folder, "certs/apiserver.crt"))) return false;
      try {
        return (await this.call("GET", "/readyz", "admin-token")).status === 200;
      } catch {
        // The certificate may have been read while the server wrote it: no later call would be believed with half of it.
        await this.#agent?.destroy();
        this.#agent = undefined;
        return false;
      }
    });
  }

  #lastLines(program: Program): string {
    return readFileSync(join(this.folder, `${program}.log`), "utf8")
      .trim()
      .split("\n")
      .slice(-3)
      .join("; ");
  }

  #spawn(program: Program): void {
    const path = program === "etcd" ? "etcd" : join(PROGRAMS, program);
    const log = openSync(join(this.folder, `${program}.log`), "a");
    const child = spawn(path, this.#words.get(program)!, { stdio: ["ignore", log, log], cwd: this.folder });
    living.add(child);
    child.once("close", () => living.delete(child));
    this.#children.set(program, child);
  }
}
