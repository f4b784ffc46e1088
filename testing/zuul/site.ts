import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { closeSync, mkdirSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { patient } from "../patience.ts";
import { type Sshd, type SshdOptions, startSshd } from "../sshd/index.ts";
import { adopt, removeFolder, temporaryFolder } from "../zookeeper/children.ts";
import { freePort } from "../zookeeper/ports.ts";
import { ZuulApi } from "./api.ts";
import { type MariaDb, startMariaDb } from "./database.ts";
import { type PipelineOf, type Settings, writeZuul } from "./files.ts";

const START_MS = patient(180_000);
/** For one build, with the queue in front of it. */
const RESULT_MS = patient(90_000);
const LOOK_MS = 500;

/** Options of a site: where its tree is, and what its tenant has. */
export interface ZuulOptions extends Pick<Settings, "hosts" | "tls"> {
  readonly pipelines: Readonly<Record<string, PipelineOf>>;
  readonly objects?: string;
  /** Whether labels that no provider of Zuul has are asked of Nodepool. Default: true, as in Zuul. */
  readonly nodepool?: boolean;
  /** Of the machine of the jobs. */
  readonly sshd?: (folder: string) => SshdOptions;
}

/** A program of Zuul. */
export class ZuulProgram {
  readonly #log: string;
  readonly #child: ChildProcess;
  readonly #ended: Promise<void>;

  /** `log`: the file that gets what it writes. */
  constructor(command: string, words: readonly string[], log: string) {
    this.#log = log;
    const file = openSync(log, "a");
    // In a group of its own: servers that an executor forks for its own use outlive it.
    this.#child = spawn(command, words, { stdio: ["ignore", file, file], detached: true });
    closeSync(file);
    this.#ended = adopt(this.#child);
  }

  get log(): string {
    return readFileSync(this.#log, "utf8");
  }

  get dead(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  /** SIGKILL; what an executor has started ends with it. */
  async kill(): Promise<void> {
    if (!this.dead) process.kill(-this.#child.pid!, "SIGKILL");
    await this.#ended;
  }
}

/** Scheduler, executor and web server of the real Zuul, their database, and a machine with an sshd for its jobs. */
export class ZuulSite implements AsyncDisposable {
  readonly api: ZuulApi;
  readonly folder: string;
  /** The machine of the jobs: Zuul's executor may log in as the user of this process. */
  readonly machine: Sshd;
  readonly #config: string;
  readonly #database: MariaDb;
  readonly #venv: string;
  readonly #programs = new Map<string, ZuulProgram>();

  private constructor(settings: Settings, config: string, machine: Sshd, database: MariaDb) {
    this.#database = database;
    this.folder = settings.folder;
    this.machine = machine;
    this.#venv = settings.python;
    this.#config = config;
    this.api = new ZuulApi(settings.web, settings.secret);
  }

  /** Makes a site; its programs start with `start`, when the machine may have been configured somewhere. */
  static async make(options: ZuulOptions): Promise<ZuulSite> {
    const venv = execFileSync(join(import.meta.dirname, "install.sh"), { encoding: "utf8" }).trim();
    const folder = await temporaryFolder("nodeyard-zuul-");
    mkdirSync(join(folder, "db"));
    const database = await startMariaDb(join(folder, "db"), "zuul");
    const settings: Settings = {
      objects: "",
      nodepool: true,
      ...options,
      folder,
      database: database.port,
      web: await freePort(),
      finger: await freePort(),
      python: venv,
      secret: randomBytes(32).toString("hex"),
      readable: execFileSync(join(venv, "bin/python"), ["-c", "import sys; print(sys.base_prefix)"], {
        encoding: "utf8",
      }).trim(),
    };
    const config = writeZuul(settings);
    const authorizedKey = readFileSync(join(folder, "etc/id.pub"), "utf8").trim();
    return new ZuulSite(
      settings,
      config,
      await startSshd({ ...options.sshd?.(folder), authorizedKey }),
      database,
    );
  }

  /** Starts these programs ("scheduler", "executor", "web", "launcher") and resolves when all of them run. */
  async start(...names: readonly string[]): Promise<void> {
    for (const name of names) {
      await this.kill(name);
      const words = ["-c", this.#config, "-f"];
      const log = join(this.folder, `${name}.log`);
      this.#programs.set(name, new ZuulProgram(join(this.#venv, "bin", `zuul-${name}`), words, log));
    }
    const limit = performance.now() + START_MS;
    for (;;) {
      const running = await this.#running();
      if (names.every((name) => running.includes(name))) return;
      const dead = names.find((name) => this.program(name).dead);
      if (dead !== undefined || performance.now() > limit)
        throw new Error(
          `zuul-${dead ?? names} does not run:\n${this.program(dead ?? names[0]!).log.slice(-8_000)}`,
        );
      await sleep(LOOK_MS);
    }
  }

  /** The result of the build of this tag in this pipeline, once it has ended. */
  async result(project: string, tag: string, pipeline: string): Promise<string> {
    const limit = performance.now() + RESULT_MS;
    for (;;) {
      const build = await this.api.ended(project, tag, pipeline);
      if (build !== undefined) return build.result!;
      if (performance.now() > limit)
        throw new Error(
          `${pipeline} of ${project} ${tag} has no result:\n${this.program("executor").log.slice(-8_000)}`,
        );
      await sleep(LOOK_MS);
    }
  }

  program(name: string): ZuulProgram {
    return this.#programs.get(name)!;
  }

  async kill(name: string): Promise<void> {
    await this.#programs.get(name)?.kill();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#programs.values()].map((program) => program.kill()));
    await Promise.all([this.machine.stop(), this.#database.stop()]);
    await removeFolder(this.folder);
  }

  /** Kinds of the components that say they run, as Zuul's own web server sees them. */
  async #running(): Promise<readonly string[]> {
    type Components = Readonly<Record<string, readonly { readonly state: string }[]>>;
    const kinds = await this.api.call<Components>("GET", "/components").catch((): Components => ({}));
    return Object.keys(kinds).filter((kind) => kinds[kind]!.some(({ state }) => state === "running"));
  }
}
