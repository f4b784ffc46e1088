import { randomUUID } from "node:crypto";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Machine } from "../slivers/index.ts";
import { freePort } from "../zookeeper/index.ts";
import { writeLastDay } from "./last-day.ts";
import { Daemon, run } from "./program.ts";

/** What a test does through REST v1, besides the page. */
export type Call = <T>(path: string, body?: object) => Promise<T>;

const HOUR_MS = 3_600_000;
/** Nodes of a pool that never answers. */
export const SLOW_NODES = 3;
export const MIN_READY = 2;

/**
 * A real `nodeyard up` with a pool in every state that people look at: nodes that are ready, being made, failing and held, leases,
 * requests that wait, images that are built, are not, and fail, slivers that lend, and a day that went before. Browsers reach it at one
 * address over all its restarts.
 */
export class PoolSite implements AsyncDisposable {
  readonly folder = mkdtempSync(join(tmpdir(), "nodeyard-browser-"));
  readonly #state = join(this.folder, "state");
  readonly #config = join(this.folder, "nodepool.yaml");
  readonly #cloud = join(this.folder, "cloud");
  readonly #token = join(this.folder, "webapp-token");
  readonly #port: number;
  /** A real sliver manager whose slivers are in its memory. */
  readonly machine = new Machine("rack-7");
  #up: Daemon | undefined;

  static async start(): Promise<PoolSite> {
    const site = new PoolSite(await freePort());
    try {
      await writeLastDay(site.#state);
      await site.machine.start({ machine: { cpu: 4000, highestIndex: 30, spares: 1 } });
      await site.startUp();
      return site;
    } catch (error) {
      await site[Symbol.asyncDispose]();
      throw error;
    }
  }

  private constructor(port: number) {
    this.#port = port;
    mkdirSync(this.#cloud);
    mkdirSync(this.#state, { mode: 0o700 });
    writeFileSync(this.#token, `${randomUUID()}\n`, { mode: 0o600 });
    writeFileSync(this.#config, this.#configuration());
  }

  get origin(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** What it logged since its last start. */
  get log(): string {
    return this.#up?.log ?? "";
  }

  async startUp(): Promise<void> {
    const words = ["--state", this.#state, "-c", this.#config, "up", "--webapp", `127.0.0.1:${this.#port}`];
    // Slivers of this machine could reach a listener that asks for none.
    words.push("--webapp-token", this.#token);
    this.#up = await Daemon.start(words, "Nodeyard is up");
  }

  async stop(signal: NodeJS.Signals): Promise<void> {
    await this.#up?.end(signal);
  }

  /** A command of the command line, at this state folder; resolves with what it printed. */
  run(...words: readonly string[]): Promise<string> {
    return run("--state", this.#state, ...words);
  }

  /** A token of this role; `more`: options of `nodeyard token create`. */
  async token(name: string, role: string, ...more: readonly string[]): Promise<string> {
    const made = await this.run("token", "create", name, "--role", role, ...more, "--json");
    return (JSON.parse(made) as { readonly token: string }).token;
  }

  /** REST v1 for whoever has this token. Rejects with the answer when it is refused. */
  as(token: string): Call {
    return async <T>(path: string, body?: object) => {
      const reply = await fetch(this.origin + path, {
        headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
        ...(body && { method: "POST", body: JSON.stringify(body) }),
      });
      const text = await reply.text();
      if (!reply.ok) throw new Error(`${path}: ${reply.status} ${text}`);
      return (text === "" ? undefined : JSON.parse(text)) as T;
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop("SIGKILL");
    await this.machine.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** An image's command: `script` is run with the name of the file to make. */
  #command(name: string, script: string): string {
    const path = join(this.folder, name);
    writeFileSync(path, `#!/bin/sh\nset -e\n${script}\n`);
    chmodSync(path, 0o755);
    return path;
  }

  #configuration(): string {
    const images = join(this.folder, "images");
    mkdirSync(images);
    const builds = this.#command("builds", 'echo "packing"; echo image >"$DIB_IMAGE_FILENAME.raw"');
    const fails = this.#command("fails", 'echo "no such package: libfoo2" >&2; exit 1');
    const lasts = this.#command("lasts", 'echo "installing packages"; exec sleep 3600');
    // Machines outlive the process.
    const journal = (name: string) => `journal: ${join(this.folder, name)}.journal`;
    const cloudImages = "cloud-images: [{name: debian, username: zuul}]";
    const pool = (most: number, labels: readonly string[]) =>
      `pools: [{name: main, max-servers: ${most}, labels: [${labels
        .map((label) => `{name: ${label}, cloud-image: debian, min-ram: 2048}`)
        .join(", ")}]}]`;
    return `
images-dir: ${images}
tenant-resource-limits: [{tenant-name: web, budget: {amount: 500, currency: EUR}}]
build-log-dir: ${join(this.folder, "build-logs")}
labels:
  - {name: debian-small, min-ready: ${MIN_READY}}
  - {name: debian-large}
  - {name: arm-board}
  - {name: gpu}
  - {name: slice, min-ready: 1}
  - {name: build}
diskimages:
  - {name: debian-trixie, build-command: [${builds}], username: zuul}
  - {name: centos-stream, build-command: [${fails}], username: zuul}
  - {name: ubuntu-noble, build-command: [${lasts}], username: zuul}
providers:
  - name: east
    driver: fake
    cloud: east
    fake: {latency: {create: [20, 40], boot: [20, 40]}, ${journal("east")}, images: {folder: ${this.#cloud}, formats: [raw]}}
    ${cloudImages}
    diskimages: [{name: debian-trixie}, {name: ubuntu-noble}, {name: centos-stream}]
    ${pool(8, ["debian-small", "debian-large"])}
  - name: lab
    driver: fake
    cloud: lab
    boot-timeout: 3600
    launch-timeout: 3600
    fake: {latency: {create: 0, boot: ${HOUR_MS}}, ${journal("lab")}}
    ${cloudImages}
    ${pool(SLOW_NODES, ["arm-board"])}
  - name: west
    driver: fake
    cloud: west
    fake: {latency: {}, faults: {create-fails: -1}}
    ${cloudImages}
    ${pool(4, ["gpu"])}
  - name: rack
    driver: sliver
    machines: [{name: ${this.machine.name}, socket: ${this.machine.socket}}]
    signing-keys: ${this.machine.keysFile}
    pools:
      - name: main
        max-servers: 6
        labels:
          - {name: slice, cpu-guarantee: 1000, cpu-cap: 2000, memory-guarantee: 512, memory: 1024, disk: 2048, lend: idle, host-key-checking: false}
          - {name: build, cpu-guarantee: 500, memory: 1536, disk: 1024, caches: [{name: ccache, size: 1000, commit: success}], host-key-checking: false}
`;
  }
}
