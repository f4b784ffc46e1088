import { execFileSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Victim } from "../chaos/victim.ts";
import { SOURCE } from "../program.ts";
import { type Client, output } from "../qemu/index.ts";
import type { ImageKind } from "./kinds.ts";
import { ELEMENTS } from "./require.ts";

/** For a command that waits: for a build, or for a machine to boot. */
const COMMAND_MS = 90 * 60_000;
/** A user id that no user of the test machine has. */
const USER = "61235";

export interface ListedBuild {
  readonly id: string;
  readonly state: string;
}

export interface ListedUpload {
  readonly id: string;
  readonly state: string;
}

interface Granted {
  readonly lease: string;
  readonly nodes: readonly {
    readonly id: string;
    readonly interface_ip: string;
    readonly connection_port: number;
    readonly host_keys: readonly string[];
  }[];
}

interface LifeStep {
  readonly of: string;
  readonly attempt: number;
  readonly step: string;
}

export interface Trial {
  /** Null: no trial is running. */
  readonly candidate: string | null;
  readonly rejected: readonly string[];
  readonly last: { readonly build: string; readonly verdict: string; readonly why: string } | null;
}

/** Nodeyard on one machine that builds an image, stores it and boots it. */
export class ImageLife {
  readonly folder = mkdtempSync(join(tmpdir(), "nodeyard-images-"));
  readonly images = join(this.folder, "images");
  readonly machines = join(this.folder, "machines");
  readonly #break = join(this.folder, "break");
  readonly #state = join(this.folder, "state");
  readonly #config = join(this.folder, "nodepool.yaml");
  readonly #client: Client;
  #up: Victim | undefined;

  constructor(kind: ImageKind, client: Client) {
    this.#client = client;
    // QEMU runs as another user.
    chmodSync(this.folder, 0o711);
    for (const folder of [this.images, this.machines]) mkdirSync(folder);
    writeFileSync(
      this.#config,
      JSON.stringify({
        "images-dir": this.images,
        "build-log-dir": join(this.folder, "logs"),
        "elements-dir": ELEMENTS,
        labels: [{ name: "built" }],
        diskimages: [
          {
            name: "image",
            username: "root",
            elements: [...kind.elements, ...(kind.saved === true ? ["nodeyard-parked"] : [])],
            "dib-cmd": kind.dibCommand,
            "env-vars": { ...kind.env, NODEYARD_BREAK: this.#break },
            ...(kind.trial === undefined ? {} : { canary: kind.trial }),
          },
        ],
        providers: [
          {
            name: "local",
            driver: "qemu",
            folder: this.machines,
            user: USER,
            accelerator: "tcg",
            "boot-timeout": kind.bootSeconds,
            "launch-timeout": kind.bootSeconds + 300,
            "authorized-keys": [client.authorizedKey],
            diskimages: [{ name: "image", ...kind.boot }],
            pools: [
              {
                name: "main",
                labels: [
                  {
                    name: "built",
                    diskimage: "image",
                    seed: "fw_cfg",
                    "saved-state": kind.saved === true,
                    ram: kind.ram,
                    disk: kind.disk,
                    "console-log": true,
                  },
                ],
              },
            ],
          },
        ],
      }),
    );
  }

  /** `nodeyard up`, ready for clients. */
  async up(): Promise<Victim> {
    const up = new Victim(["--state", this.#state, "-c", this.#config, "up"], { inside: false });
    this.#up = up;
    if (!(await up.printed("Nodeyard is up"))) throw new Error(up.errors);
    return up;
  }

  /** Runs a command to its end and gives its output; rejects when it fails. */
  run(...words: readonly string[]): Promise<string> {
    const own = ["--disable-warning=ExperimentalWarning", SOURCE, "--state", this.#state, ...words];
    return output(process.execPath, own, { timeout: COMMAND_MS });
  }

  async json<T>(...words: readonly string[]): Promise<T> {
    return JSON.parse(await this.run(...words, "--json")) as T;
  }

  /** Ids of builds in a state, the newest first. */
  async builds(state: string): Promise<readonly string[]> {
    const all = await this.json<ListedBuild[]>("dib-image-list");
    return all.filter((one) => one.state === state).map(({ id }) => id.slice("image-".length));
  }

  /** Builds with a ready upload. */
  async uploaded(): Promise<readonly string[]> {
    const all = await this.json<ListedUpload[]>("image-list");
    return all.filter(({ state }) => state === "ready").map(({ id }) => id);
  }

  /** Sets whether the images of further builds boot; for kinds with the element that breaks them. */
  breakBuilds(broken: boolean): void {
    if (broken) writeFileSync(this.#break, "");
    else rmSync(this.#break);
  }

  /** How the trial of a new build goes, or how the last one ended. */
  async trial(): Promise<Trial | null> {
    const [image] = await this.json<{ readonly canary: Trial | null }[]>("image-status");
    return image?.canary ?? null;
  }

  /** Names of the steps in which a machine was created. */
  async steps(node: string): Promise<readonly string[]> {
    const { steps } = await this.json<{ readonly steps: readonly LifeStep[] }>("explain", "node", node);
    return steps.filter(({ of }) => of === "launch").map(({ attempt, step }) => `${attempt} ${step}`);
  }

  /** Asks for a machine and waits for it. */
  async granted(): Promise<Login> {
    const { lease, nodes } = await this.json<Granted>("request", "built", "--wait");
    const { id: node, interface_ip: host, connection_port: port, host_keys: keys } = nodes[0]!;
    const at = { interfaceIp: host, connection: { port } };
    return { lease, node, keys, run: (command) => this.#client.run(at, keys, command) };
  }

  /** What is left at the end and must not be, as text. */
  leftovers(): readonly string[] {
    const inside = (text: string) => text.includes(this.folder);
    const devices = ["--list", "--noheadings", "--output", "BACK-FILE"];
    const loops = execFileSync("losetup", devices, { encoding: "utf8" }).split("\n").filter(inside);
    const mounts = readFileSync("/proc/mounts", "utf8").split("\n").filter(inside);
    return [
      ...loops.map((file) => `a loop device of ${file}`),
      ...mounts.map((line) => `a mount: ${line}`),
      ...processesIn(this.folder).map((pid) => `process ${pid}`),
      ...names(join(this.images, ".work")).map((name) => `a build's folder ${name}`),
      ...names(join(this.machines, "nodes")).map((name) => `a machine's folder ${name}`),
    ];
  }

  /** Removes machines after a failure, because they outlive Nodeyard. */
  async end(): Promise<void> {
    await this.#up?.signal("SIGKILL");
    for (const pid of processesIn(this.folder)) process.kill(pid, "SIGKILL");
  }

  async close(): Promise<void> {
    await this.end();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** A machine that a client has. */
export interface Login {
  readonly lease: string;
  readonly node: string;
  readonly keys: readonly string[];
  /** Runs a command in it over SSH and gives its output. */
  run(command: string): Promise<string>;
}

/** Processes whose working folder is in `folder`, as QEMU's and a build's are. */
function processesIn(folder: string): readonly number[] {
  const pids = names("/proc").filter((name) => /^\d+$/.test(name));
  return pids.filter((pid) => worksIn(pid, folder)).map(Number);
}

function worksIn(pid: string, folder: string): boolean {
  try {
    return readlinkSync(`/proc/${pid}/cwd`).startsWith(`${folder}/`);
  } catch {
    // It ended meanwhile.
    return false;
  }
}

function names(folder: string): readonly string[] {
  return existsSync(folder) ? readdirSync(folder) : [];
}
