import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { ForeignMachine } from "../../../../../testing/foreign-machine/index.ts";
import { patient } from "../../../../../testing/patience.ts";
import { Running } from "../../../cli/test/nodeyard.ts";

export const ROOT = fileURLToPath(new URL("../../../../../", import.meta.url));
/** Files that name users. */
export const USERS = ["/etc/passwd", "/etc/group", "/etc/shadow", "/etc/gshadow"];
/** What useradd and sshd leave in any case. */
export const ELSEWHERE =
  /^\/(etc\/(passwd|group|shadow|gshadow|subuid|subgid)-?|etc\/\.pwd\.lock|var\/log\/|etc\/ssh\/ssh_host)/;
const LOOK_MS = 100;
/** A busy machine takes many seconds for one command; several fit into the time of one test. */
const COMMAND_MS = patient(120_000);
/** For what is polled for. */
const PATIENCE_MS = patient(240_000);
/** Characters. */
const LAST_WORDS = 4_000;

/** What a node's record says of how it is reached. */
export interface Slot {
  readonly [field: string]: unknown;
}

/** A launcher's state folder here, and another machine that it may make a sliver host over ssh. */
export class ForeignSite {
  readonly machine = new ForeignMachine();
  readonly folder = join(this.machine.folder, "launcher");
  readonly state = join(this.folder, "state");
  readonly bundle = join(this.machine.folder, "bundle");
  readonly sshConfig = join(this.machine.folder, "ssh_config");
  readonly sliverdConfig = join(this.folder, "sliverd.json");
  readonly config = join(this.folder, "nodepool.yaml");
  readonly #userKey = join(this.folder, "user-key");
  #up: Running | undefined;

  async start(options: { readonly without?: readonly string[] } = {}): Promise<void> {
    const { machine } = this;
    await machine.start(options);
    execFileSync(process.execPath, [join(ROOT, "tools/build/main.ts"), "--bundle", this.bundle], {
      stdio: "pipe",
    });
    mkdirSync(this.state, { recursive: true, mode: 0o700 });
    const known = join(machine.folder, "known_hosts");
    writeFileSync(known, `${machine.address} ${machine.hostKey}\n`);
    const lines = [
      `HostName ${machine.address}`,
      `IdentityFile ${machine.key}`,
      "IdentitiesOnly yes",
      `UserKnownHostsFile ${known}`,
    ];
    writeFileSync(this.sshConfig, `Host foreign\n${lines.map((line) => `  ${line}\n`).join("")}`);
  }

  /** Keys of the launcher, and what the machine's manager is to be told. */
  async prepare(sliverd: object = {}): Promise<void> {
    const { code, err } = await this.nodeyard("sliverd", "keys", "init");
    if (code !== 0) throw new Error(err);
    // Slivers are logged in to through its one interface, which is to forward.
    this.machine.run("sysctl", "-qw", "net.ipv4.conf.eth0.forwarding=1");
    const isolation = { pool: { bytes: 1_000_000_000 }, inbound: { device: "eth0" } };
    writeFileSync(this.sliverdConfig, JSON.stringify({ isolation, startSpacingSeconds: 0, ...sliverd }));
    execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", this.#userKey]);
  }

  async stop(): Promise<void> {
    await this.host("uninstall", "--bundle", this.bundle).catch(() => undefined);
    await this.machine.stop();
  }

  /** The key of whoever uses nodes, as `type base64`. */
  get userKey(): string {
    return readFileSync(`${this.#userKey}.pub`, "utf8").trim().split(" ").slice(0, 2).join(" ");
  }

  /** Rejects when it takes longer than any command should: with the processes here and on the machine at that moment. */
  async nodeyard(...words: string[]) {
    const running = new Running(["--state", this.state, ...words]);
    let hung = "";
    const late = setTimeout(() => {
      try {
        hung = this.machine.processes(running.child.pid!);
      } finally {
        running.kill("SIGKILL");
      }
    }, COMMAND_MS);
    try {
      const ended = await running.ended;
      if (hung === "") return ended;
    } finally {
      clearTimeout(late);
    }
    throw new Error(
      `nodeyard ${words.join(" ")} was killed after ${COMMAND_MS / 1000} s; processes at that moment:\n${hung}\n${this.#told}`,
    );
  }

  async json<T>(...words: string[]): Promise<T> {
    const { code, signal, out, err } = await this.nodeyard(...words, "--json");
    if (code !== 0) throw new Error(`${words.join(" ")} ended with ${code ?? signal}: ${err}\n${this.#told}`);
    return JSON.parse(out) as T;
  }

  host(verb: string, ...words: string[]) {
    return this.nodeyard("sliverd", verb, "root@foreign", "--ssh-config", this.sshConfig, ...words);
  }

  install(...words: string[]) {
    return this.host("install", "--bundle", this.bundle, ...words);
  }

  /** A launcher that serves `config`. */
  async up(config: string): Promise<Running> {
    writeFileSync(this.config, config);
    this.#up = new Running(["--state", this.state, "-c", this.config, "up"]);
    await this.#up.printed("is up");
    return this.#up;
  }

  /** For whoever has to find out why something did not happen. */
  get #told(): string {
    const manager = join(this.machine.upper, "var/log/nodeyard-sliverd.log");
    const said = {
      launcher: this.#up?.err ?? "",
      manager: existsSync(manager) ? readFileSync(manager, "utf8") : "",
    };
    return Object.entries(said)
      .map(([who, words]) => `last words of the ${who}:\n${words.slice(-LAST_WORDS)}`)
      .join("\n");
  }

  /** Runs a script in a node: by the address, port, user and host key that its record tells, and by no other. */
  login(slot: Slot, script: string): string {
    return execFileSync("ssh", [...this.loginWords(slot), script], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"],
      timeout: patient(120_000),
    });
  }

  /** What `ssh` is told before the script. */
  loginWords(slot: Slot): string[] {
    const known = join(this.machine.folder, "slots");
    const keys = slot.host_keys as readonly string[];
    writeFileSync(known, keys.map((line) => `slot ${line}\n`).join(""));
    const options = [
      "BatchMode=yes",
      "StrictHostKeyChecking=yes",
      `UserKnownHostsFile=${known}`,
      "HostKeyAlias=slot",
      "ConnectTimeout=10",
    ];
    const where = ["-F", "none", "-i", this.#userKey, "-p", String(slot.connection_port)];
    const target = `${slot.username as string}@${slot.interface_ip as string}`;
    return [...where, ...options.flatMap((one) => ["-o", one]), "--", target];
  }

  /** Looks until it is so; throws after `limitMs`. */
  async until<T>(
    what: string,
    look: () => T | undefined | false | Promise<T | undefined | false>,
    limitMs = PATIENCE_MS,
  ) {
    for (const began = performance.now(); performance.now() - began < limitMs; ) {
      const found = await look();
      if (found !== undefined && found !== false) return found;
      await pause(LOOK_MS);
    }
    throw new Error(`it never happened within ${limitMs} ms: ${what}\n${this.#told}`);
  }

  /** Until no node of a provider is left. */
  gone(provider: string): Promise<true> {
    return this.until(`nodes of ${provider} are gone`, async () => {
      const nodes = await this.json<Slot[]>("list");
      return nodes.every((node) => node.provider !== provider);
    });
  }

  /** What slivers have on the machine: their roots. */
  get roots(): string {
    return this.machine.run("sh", "-c", "ls /var/lib/nodeyard-slivers/slivers 2>/dev/null || true").trim();
  }
}
