import { type ChildProcess, spawn } from "node:child_process";
import type { Rspec } from "@nodeyard/sliver-protocol";
import { patient } from "../../../../../../testing/patience.ts";
import { computeLimits } from "../../../src/core/limits.ts";
import { configOf, type SliverConfig } from "../../../src/core/plan.ts";
import { POLICIES } from "../../../src/core/profiles.ts";
import type { BackEnd } from "../../../src/isolation/contract.ts";
import { type RealMachine, SSH_OPTIONS } from "./rig.ts";

/** Per mille of one CPU. */
const CPU = 1000;

/** Configurations of slivers that share the machine: index, and what differs from small amounts. */
export function configsOf(
  key: string,
  rspecs: Readonly<Record<number, Partial<Rspec>>>,
  cores?: readonly number[],
): SliverConfig[] {
  const whole = new Map<string, Rspec>(
    Object.entries(rspecs).map(([index, some]) => [
      `sliver${index}`,
      { ...POLICIES.v2.defaults, memoryCap: 131_072, pids: 64, disk: 65_536, ...some },
    ]),
  );
  const limits = computeLimits(whole, { cpu: CPU, link: 1_000_000_000 });
  return [...whole].map(([name, rspec]) => {
    const index = Number(name.slice(6));
    const record = {
      name,
      stamp: { epoch: 1, number: 1 },
      generation: 1,
      kind: "sliver" as const,
      instantiation: "plc-instantiated" as const,
      keys: [key],
      initscript: "",
      delegations: [],
      rspec,
      local: { incarnation: index, index, loans: [] },
    };
    return configOf(record, index, rspec, limits.get(name)!, cores);
  });
}

export async function bringUp(backEnd: BackEnd, configs: readonly SliverConfig[]): Promise<void> {
  const { signal } = new AbortController();
  await Promise.all(
    configs.map(async (config) => {
      await backEnd.create(config, signal);
      await backEnd.configure(config, signal);
      await backEnd.start(config, signal);
    }),
  );
}

export function addressOf(index: number): string {
  return `10.213.0.${index}`;
}

export function loginOf(index: number): string {
  return `ny-${String(index).padStart(2, "0")}`;
}

/** Runs a script in a sliver and resolves to all that it said, however it ended. */
export function inSliver(
  real: RealMachine,
  index: number,
  script: string,
  login = loginOf(index),
): Promise<string> {
  const child = begin(real, index, script, login);
  let said = "";
  child.stdout!.on("data", (data) => {
    said += data;
  });
  child.stderr!.on("data", (data) => {
    said += data;
  });
  return new Promise((resolve) => child.once("close", () => resolve(said.trim())));
}

/** Begins a script in a sliver; it ends with its ssh, at the latest after a minute. */
export function begin(
  real: RealMachine,
  index: number,
  script: string,
  login = loginOf(index),
): ChildProcess {
  const to = `${login}@${addressOf(index)}`;
  return spawn("ssh", ["-i", real.keyFile, ...SSH_OPTIONS, to, script], {
    stdio: ["ignore", "pipe", "pipe"],
    timeout: patient(60_000),
  });
}
