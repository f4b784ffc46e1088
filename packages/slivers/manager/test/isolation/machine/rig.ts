import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Clock, systemClock } from "@nodeyard/runtime";
import { patient } from "../../../../../../testing/patience.ts";
import { difference, hostState } from "../../../../../../testing/slivers/index.ts";
import { LxcBackEnd } from "../../../src/isolation/lxc/edge/lxc-back-end.ts";
import { SliverMachine } from "../../../src/isolation/lxc/edge/machine.ts";
import { type IsolationOptions, isolationSchema } from "../../../src/isolation/lxc/options.ts";
import { keep, plant, seedOf } from "./seed.ts";

export { whyNot } from "../../../../../../testing/slivers/index.ts";

export interface RealMachine {
  readonly folder: string;
  /** Of a key that may log in. */
  readonly key: string;
  readonly keyFile: string;
  /** A machine as a new process would see it. */
  machine(): SliverMachine;
  backEnd(name: "account" | "container", clock?: Clock): LxcBackEnd;
  /** A back end of copies, of a manager whose configuration differs. */
  machineWith(some: Readonly<Partial<Record<keyof IsolationOptions, object>>>): LxcBackEnd;
  /** What is on the machine and was not before, once what is removed in its own time is gone. */
  leftovers(): Promise<string[]>;
  /** Runs a shell script in a sliver, over ssh. */
  ssh(address: string, script: string, login?: string): string;
  /** Ends whatever a test that failed left, so that the next one does not fail too. */
  clear(): Promise<void>;
  stop(): Promise<void>;
}

/** One machine for a test file. */
export async function realMachine(
  some: Readonly<Record<string, unknown>> = {},
  memory = 4_294_967_296,
): Promise<RealMachine> {
  const folder = mkdtempSync(join(tmpdir(), "nodeyard-slivers-"));
  const untouched = hostState(folder);
  const keyFile = join(folder, "id");
  execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-C", "", "-f", keyFile]);
  const options = isolationSchema.parse({
    folder,
    cache: join(tmpdir(), "nodeyard-image-cache"),
    pool: { bytes: 1_500_000_000 },
    outbound: false,
    ...some,
  });
  const machines: SliverMachine[] = [];
  const machine = (other = {}, clock: Clock = systemClock) => {
    const onProgress = (line: string) => console.error(line);
    const one = new SliverMachine({ ...options, ...other, link: 1_000_000_000, memory, clock, onProgress });
    machines.push(one);
    return one;
  };
  const seed = seedOf(options);
  if (seed !== undefined && existsSync(seed)) plant(seed, folder);
  const first = machine();
  const { signal } = new AbortController();
  await first.prepare(signal);
  const image = await first.images.ensure("debian", signal);
  if (!existsSync(join(image, "usr/sbin/sshd"))) throw new Error("the image holds no sshd");
  if (seed !== undefined && !existsSync(seed)) await keep(first.pool, seed, folder, signal);
  const before = hostState(folder);
  const clear = async () => {
    const backEnd = new LxcBackEnd("account", machine());
    for (const one of await backEnd.inspect(signal)) await backEnd.destroy(one, signal);
  };
  return {
    folder,
    key: readFileSync(`${keyFile}.pub`, "utf8").trim(),
    keyFile,
    machine: () => machine(),
    backEnd: (name, clock) => new LxcBackEnd(name, machine({}, clock)),
    machineWith: (other) => {
      const all: Partial<IsolationOptions> = isolationSchema.parse(other);
      for (const key of Object.keys(all) as (keyof IsolationOptions)[]) if (!(key in other)) delete all[key];
      return new LxcBackEnd("container", machine(all));
    },
    leftovers: async () => {
      // They work in this process, which looking at the machine holds up.
      await Promise.all(machines.map(({ pool }) => pool.groups.hurry(signal)));
      return difference(before, hostState(folder));
    },
    ssh: (address, script, login = "ny-01") => ssh(keyFile, login, address, script),
    clear,
    stop: async () => {
      await clear();
      await Promise.all(machines.map(({ pool }) => pool.groups.stop()));
      await first.dismantle(signal);
      rmSync(folder, { recursive: true, force: true });
      const left = difference(untouched, hostState(folder));
      if (left.length > 0) throw new Error(`the machine is not as before:\n${left.join("\n")}`);
    },
  };
}

export const SSH_OPTIONS = [
  "StrictHostKeyChecking=no",
  "UserKnownHostsFile=/dev/null",
  "LogLevel=ERROR",
  "BatchMode=yes",
  "ConnectTimeout=10",
].flatMap((option) => ["-o", option]);

function ssh(keyFile: string, login: string, address: string, script: string): string {
  return execFileSync("ssh", ["-i", keyFile, ...SSH_OPTIONS, `${login}@${address}`, script], {
    encoding: "utf8",
    timeout: patient(60_000),
    stdio: ["ignore", "pipe", "pipe"],
  });
}
