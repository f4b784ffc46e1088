import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { mkdirSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { SOURCE } from "../program.ts";
import type { KubernetesSite } from "./site.ts";

const TOKENS = "/var/run/secrets/kubernetes.io/serviceaccount";
const LOOK_MS = 200;
/** For one answer of a process. A pod whose process does not answer holds up no other. */
const PROBE_MS = 5_000;
const LISTENS = /"address":"http:\/\/127\.0\.0\.1:(\d+)","message":"the web interface listens"/g;
/** Namespaces of its own: the pod's name as the host's, the pod's token where clients look for it, and then the program. */
const MOUNTED = `hostname "$0" && mount -t tmpfs none /run && mkdir -p /run/secrets/kubernetes.io && ln -s "$1" /run/secrets/kubernetes.io/serviceaccount && shift && exec "$@"`;

interface Volume {
  readonly name: string;
  readonly configMap?: { readonly name: string };
  readonly emptyDir?: object;
  readonly persistentVolumeClaim?: object;
  readonly projected?: {
    readonly sources: readonly { readonly serviceAccountToken?: { readonly expirationSeconds: number } }[];
  };
}

interface Container {
  readonly name: string;
  readonly command?: readonly string[];
  readonly args: readonly string[];
  readonly env: readonly { readonly name: string; readonly value: string }[];
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[];
}

interface PodOfChart {
  readonly metadata: { readonly name: string; readonly uid: string; readonly deletionTimestamp?: string };
  readonly spec: {
    readonly nodeName?: string;
    readonly serviceAccountName: string;
    readonly terminationGracePeriodSeconds: number;
    readonly volumes: readonly Volume[];
    readonly initContainers?: readonly Container[];
    readonly containers: readonly Container[];
  };
}

/** A process in place of a container. */
interface Played {
  readonly name: string;
  readonly child: ChildProcess;
  /** Characters of the log before it. */
  readonly logged: number;
  isReady: boolean;
  isEnding: boolean;
}

/**
 * Plays the kubelet for the pods of the chart, which kwok leaves alone: each is a process of this checkout, after its init containers, with
 * the arguments, the variables, the pod's name as its host's, the files of the ConfigMap, a folder for each mount (a claim's is there again
 * for the next pod of that name), and the service account's token of its pod, if it is to have one; it is ready as its probe says, ends by
 * SIGTERM when its pod is deleted, and only then its pod is gone. A folder's path is another than in the manifest, so that paths in arguments,
 * variables and files are replaced. Images, users, capabilities, read-only roots and networks of containers are out of reach here.
 */
export class ProcessKubelet {
  /** What went wrong: a process that ended by itself, too late, or not with 0. */
  readonly problems: string[] = [];
  readonly #site: KubernetesSite;
  readonly #path: string;
  readonly #namespace: string;
  readonly #played = new Map<string, Played>();
  readonly #loop: Promise<void>;
  #isStopped = false;

  constructor(site: KubernetesSite, namespace: string) {
    this.#site = site;
    this.#namespace = namespace;
    this.#path = `/api/v1/namespaces/${namespace}`;
    this.#loop = this.#run();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#loop;
    for (const { child } of this.#played.values()) child.kill("SIGKILL");
  }

  #blame(problem: string): void {
    if (!this.problems.includes(problem)) this.problems.push(problem);
  }

  /** Log of a pod's process. */
  log(pod: string): string {
    return readFileSync(join(this.#folder(pod), "log"), "utf8");
  }

  async #run(): Promise<void> {
    while (!this.#isStopped) {
      try {
        const path = `${this.#path}/pods?labelSelector=app.kubernetes.io/name=nodeyard`;
        const { items } = await this.#site.api<{ items: PodOfChart[] }>("GET", path);
        await Promise.all(
          items.filter(({ spec }) => spec.nodeName !== undefined).map((pod) => this.#look(pod)),
        );
      } catch (error) {
        this.#blame(String(error));
      }
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    }
  }

  async #look(pod: PodOfChart): Promise<void> {
    const { name, uid, deletionTimestamp } = pod.metadata;
    let played = this.#played.get(uid);
    if (played === undefined) {
      if (deletionTimestamp !== undefined) return this.#forget(pod);
      played = await this.#start(pod);
      this.#played.set(uid, played);
    }
    const { child } = played;
    const hasEnded = child.exitCode !== null || child.signalCode !== null;
    if (deletionTimestamp === undefined) {
      if (hasEnded) return this.#blame(`${name} ended by itself: ${this.log(name).slice(-500)}`);
      const isReady = await this.#probe(name, played.logged);
      if (isReady !== played.isReady) await this.#tell(pod, isReady);
      played.isReady = isReady;
    } else if (hasEnded) {
      if (child.exitCode !== 0) this.#blame(`${name} ended with ${child.exitCode ?? child.signalCode}`);
      this.#played.delete(uid);
      await this.#forget(pod);
    } else if (!played.isEnding) {
      played.isEnding = true;
      child.kill("SIGTERM");
      const graceMs = pod.spec.terminationGracePeriodSeconds * 1000;
      const limit = setTimeout(() => child.kill("SIGKILL"), graceMs);
      child.once("close", () => clearTimeout(limit));
    }
  }

  async #start(pod: PodOfChart): Promise<Played> {
    const { name } = pod.metadata;
    const folder = this.#folder(name);
    mkdirSync(join(folder, "tokens"), { recursive: true });
    const here = this.#mounts(pod);
    for (const { command = [] } of pod.spec.initContainers ?? []) {
      const [program = "", ...words] = command.map(here);
      execFileSync(program, words);
    }
    const { configMap } = pod.spec.volumes.find((volume) => volume.name === "config")!;
    const { data } = await this.#site.api<{ data: Record<string, string> }>(
      "GET",
      `${this.#path}/configmaps/${configMap!.name}`,
    );
    for (const [file, text] of Object.entries(data))
      writeFileSync(join(this.volume(name, "config"), file), here(text));
    await this.#token(pod, join(folder, "tokens"));
    const { args, env } = pod.spec.containers[0]!;
    const words = args.map((word) => here(word).replace(/^0\.0\.0\.0:\d+$/, "127.0.0.1:0"));
    const { hostname, port: serverPort } = new URL(this.#site.server);
    const log = openSync(join(folder, "log"), "a");
    const logged = this.log(name).length;
    const program = [process.execPath, "--disable-warning=ExperimentalWarning", SOURCE, ...words];
    const map = process.getuid!() === 0 ? [] : ["--map-root-user"];
    const child = spawn(
      "unshare",
      ["--mount", "--uts", ...map, "sh", "-c", MOUNTED, name, join(folder, "tokens"), ...program],
      {
        // Nothing of the test's own environment: no kubeconfig but none.
        env: {
          PATH: process.env.PATH,
          HOME: folder,
          TMPDIR: this.volume(name, "tmp"),
          ...Object.fromEntries(env.map(({ name, value }) => [name, here(value)])),
          KUBERNETES_SERVICE_HOST: hostname,
          KUBERNETES_SERVICE_PORT: serverPort,
        },
        stdio: ["ignore", log, log],
      },
    );
    return { name, child, logged, isReady: false, isEnding: false };
  }

  /** A folder for each mount of a pod; returns what replaces their paths in a text. */
  #mounts({ metadata: { name: pod }, spec }: PodOfChart): (text: string) => string {
    const folders = new Map<string, string>();
    for (const { name, mountPath } of spec.containers[0]!.volumeMounts) {
      const { emptyDir, configMap, persistentVolumeClaim } = spec.volumes.find((one) => one.name === name)!;
      if ((emptyDir ?? configMap ?? persistentVolumeClaim) === undefined) continue;
      const folder = this.volume(pod, name);
      if (persistentVolumeClaim === undefined) rmSync(folder, { recursive: true, force: true });
      mkdirSync(folder, { recursive: true });
      folders.set(mountPath, folder);
    }
    const paths = new RegExp(`(?<![\\w/.-])(${[...folders.keys()].join("|")})(?![\\w.-])`, "g");
    return (text) => text.replace(paths, (path) => folders.get(path)!);
  }

  /** The token and the authority that admission mounts into a pod which is to have them; where it mounts none, there are none. */
  async #token({ metadata: { name, uid }, spec }: PodOfChart, folder: string): Promise<void> {
    const mount = spec.containers[0]!.volumeMounts.find(({ mountPath }) => mountPath === TOKENS);
    const sources = spec.volumes.find((volume) => volume.name === mount?.name)?.projected?.sources ?? [];
    const wanted = sources.flatMap(({ serviceAccountToken }) => serviceAccountToken ?? [])[0];
    if (wanted === undefined) return;
    const body = {
      spec: {
        expirationSeconds: wanted.expirationSeconds,
        boundObjectRef: { apiVersion: "v1", kind: "Pod", name, uid },
      },
    };
    const path = `${this.#path}/serviceaccounts/${spec.serviceAccountName}/token`;
    const { status } = await this.#site.api<{ status: { token: string } }>("POST", path, body);
    writeFileSync(join(folder, "token"), status.token);
    const root = await this.#site.api<{ data: Record<string, string> }>(
      "GET",
      `${this.#path}/configmaps/kube-root-ca.crt`,
    );
    writeFileSync(join(folder, "ca.crt"), root.data["ca.crt"]!);
  }

  async #probe(pod: string, logged: number): Promise<boolean> {
    const port = [...this.log(pod).slice(logged).matchAll(LISTENS)].at(-1)?.[1];
    if (port === undefined) return false;
    try {
      const signal = AbortSignal.timeout(PROBE_MS);
      return (await fetch(`http://127.0.0.1:${port}/ready`, { signal })).ok;
    } catch {
      return false;
    }
  }

  async #tell({ metadata: { name } }: PodOfChart, isReady: boolean): Promise<void> {
    const at = new Date().toISOString();
    const status = isReady ? "True" : "False";
    const conditions = ["Ready", "ContainersReady"].map((type) => ({ type, status, lastTransitionTime: at }));
    const scheduled = { type: "PodScheduled", status: "True", lastTransitionTime: at };
    const body = { status: { phase: "Running", startTime: at, conditions: [scheduled, ...conditions] } };
    await this.#site.api("PATCH", `${this.#path}/pods/${name}/status`, body);
  }

  /** As a kubelet confirms that nothing of a pod runs any more. */
  async #forget({ metadata: { name, uid } }: PodOfChart): Promise<void> {
    const body = { gracePeriodSeconds: 0, preconditions: { uid } };
    await this.#site.call("DELETE", `${this.#path}/pods/${name}`, "admin-token", body);
  }

  /** Folder of one of a pod's volumes. */
  volume(pod: string, name: string): string {
    return join(this.#folder(pod), "volumes", name);
  }

  #folder(pod: string): string {
    return join(this.#site.folder, "pods", this.#namespace, pod);
  }
}
