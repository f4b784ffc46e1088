import { mkdir, readFile, stat } from "node:fs/promises";
import { connect } from "node:net";
import { type Clock, sleep } from "@nodeyard/runtime";
import type { SliverConfig } from "../../../core/plan.ts";
import { CommandError, MachineError } from "../../../errors.ts";
import { PARENT } from "../../cgroups/edge/cgroups.ts";
import { keptHierarchies, type LimitWrites, limitWrites } from "../../cgroups/limits.ts";
import { together, writeAtomic } from "../../edge/files.ts";
import { run } from "../../edge/run.ts";
import { type Bind, lxcConfig } from "../lxc-config.ts";
import type { Names } from "../names.ts";
import type { IsolationOptions } from "../options.ts";
import { makeNodes } from "./device-nodes.ts";
import type { SliverMachine } from "./machine.ts";
import { hostBinds, writeSettings } from "./root-files.ts";
import type { Mark } from "./sliver-folders.ts";
import { holdNamespace } from "./user-namespace.ts";

/** Milliseconds. Short, because after a lost first packet TCP would wait a second before the next one. */
const CONNECT_LIMIT = 100;
const BANNER_LIMIT = 5_000;
const BETWEEN = 5;

/** Resolves when an SSH server answers with its banner; rejects with the signal's reason. */
async function waitForSsh(address: string, clock: Clock, signal: AbortSignal): Promise<void> {
  while (!(await answers(address, clock, signal))) await sleep(clock, BETWEEN, signal);
}

/** One try; false for every kind of failure, also when the signal aborts. */
function answers(address: string, clock: Clock, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: address, port: 22 });
    const end = (answer: boolean) => {
      timer.cancel();
      signal.removeEventListener("abort", onAbort);
      socket.destroy();
      resolve(answer);
    };
    const onAbort = () => end(false);
    let timer = clock.setTimer(CONNECT_LIMIT, () => end(false));
    signal.addEventListener("abort", onAbort, { once: true });
    socket.once("connect", () => {
      timer.cancel();
      timer = clock.setTimer(BANNER_LIMIT, () => end(false));
    });
    socket.once("data", (data) => end(data.toString("latin1").startsWith("SSH-")));
    socket.once("error", () => end(false));
    socket.once("end", () => end(false));
  });
}

/** Throws MachineError for a cache that the machine does not have. */
async function cacheBinds(
  names: readonly string[] = [],
  caches: IsolationOptions["caches"],
): Promise<readonly Bind[]> {
  return await Promise.all(
    names.map(async (name): Promise<Bind> => {
      const from = Object.hasOwn(caches, name) ? caches[name] : undefined;
      if (from === undefined)
        throw new MachineError(`there is no cache ${name}: add it to isolation.caches in sliverd.json`);
      const info = await stat(from).catch(() => undefined);
      if (info?.isDirectory() !== true)
        throw new MachineError(
          `${from}, the cache ${name} of isolation.caches in sliverd.json, is no folder`,
        );
      return { from, to: `cache/${name}`, kind: "dir", locked: from };
    }),
  );
}

/** The limits of a sliver on this machine. */
export async function limitsOf(
  { cgroups, pool, options, tasks }: SliverMachine,
  config: SliverConfig,
): Promise<LimitWrites> {
  const { memory, weight } = options;
  return limitWrites(config, cgroups.layout, await pool.device(), {
    memory,
    weight,
    tasks,
  });
}

/** A file in a sliver's folder; it exists once the sliver was started. */
export const CONFIG_FILE = "lxc.conf";

/** Saves the count of killed processes in the mark before the groups that count them are removed. */
export async function keepKills({ cgroups, folders }: SliverMachine, mark: string): Promise<void> {
  const kills = (await cgroups.memoryKills(mark)) ?? 0;
  const before = kills === 0 ? undefined : await folders.read(mark);
  if (before !== undefined) await folders.draft(mark, { ...before, memoryKills: before.memoryKills + kills });
}

/**
 * Starts a sliver in groups and rules that exist before its first process, and resolves when its sshd answers. Does nothing when the sliver
 * runs already.
 */
export async function launch(
  machine: SliverMachine,
  mark: string,
  names: Names,
  config: SliverConfig,
  root: Mark["root"],
  signal: AbortSignal,
): Promise<void> {
  const { caches, cgroups, network, folders, subvolumes, options } = machine;
  await machine.noRemoval();
  const runs = (await cgroups.processes(mark, "payload")).length > 0;
  // Started by an earlier call. Its rules may have gone since, with a reload of those of the host.
  if (runs) {
    await network.prepare(names, config, signal);
  } else {
    if ((await cgroups.list()).includes(mark)) {
      // Left by an interrupted start, or by a sliver that ended by itself. A start makes its groups first.
      await cgroups.lift(mark);
      await cgroups.kill(mark, signal);
      await network.disconnect(names, signal);
      await keepKills(machine, mark);
      await cgroups.remove(mark, signal);
    }
    const { writes } = await limitsOf(machine, config);
    // Its programs take as long as what follows here.
    const held = holdNamespace(names, signal);
    held.catch(() => undefined);
    try {
      const before = await folders.read(mark);
      const volumes = before?.volumes ?? [];
      // What a second start finds was left by processes that were killed.
      if (volumes.length > 0) await folders.draft(mark, { ...before!, starts: before!.starts + 1 });
      await folders.makeSocketFolder(mark);
      const devices = cgroups.layout.controllers.get("devices")?.version === 1 ? "v1" : "v2";
      const settings = {
        names,
        root: subvolumes.path(mark),
        folder: folders.path(mark),
        seen: folders.seen,
        binds: [
          ...(root === "account" ? await hostBinds() : []),
          ...(await machine.lxcfs.binds(signal)),
          ...(await cacheBinds(config.caches, options.caches)),
        ],
        copies: await Promise.all(
          volumes.map(async (one) => {
            await mkdir(folders.path(mark, "copies", one.name), { recursive: true });
            return { name: one.name, from: caches.path(mark, one), to: one.path.slice(1) };
          }),
        ),
        seccomp: config.nesting === true ? `${machine.seccomp}.nesting` : machine.seccomp,
        nesting: config.nesting === true,
        nodes: await makeNodes(folders.path(mark, "dev"), config.devices ?? [], names, signal),
        console: folders.console(mark),
        group: `${PARENT}/${mark}`,
        kept: keptHierarchies(cgroups.layout),
        devices,
        ownGroups: cgroups.layout.hierarchies.every(({ version }) => version === 2),
        ipv6: await network.speaks6(),
        ...(config.cores === undefined ? {} : { cpus: config.cores.join(",") }),
      } as const;
      const file = folders.path(mark, CONFIG_FILE);
      await cgroups.make(mark, { memory: options.memory, tasks: machine.tasks });
      await together(
        network.demandPrepared(names, config, signal),
        cgroups.apply(mark, writes),
        writeSettings(folders.path(mark, "etc"), root, names, config),
        held.then(({ pid: user }) => writeAtomic(file, lxcConfig({ ...settings, user }), { durable: false })),
      );
      // All limits and rules are in place: the first process is already bound by them.
      await start(folders.path(mark), names.user, file, signal);
    } finally {
      (await held.catch(() => undefined))?.release();
    }
    // Values that v1 does not inherit are written to the group that LXC has made.
    await cgroups.apply(
      mark,
      writes.filter(({ below }) => below !== undefined),
    );
  }
  await waitForSsh(names.address, options.clock, signal);
}

/** Has LXC start the sliver. Throws CommandError with the errors of LXC's log; its exit code says nothing. */
async function start(folder: string, user: string, file: string, signal: AbortSignal): Promise<void> {
  const log = `${folder}/lxc.log`;
  try {
    // Without newuidmap in its PATH, LXC writes the id map itself, which root may do. With it, the host's /etc/subuid would have to contain
    // the range, and the host's files must not be changed.
    await run(["/usr/bin/lxc-start", "-d", "-n", user, "-f", file, "-P", folder, "-o", log, "-l", "WARN"], {
      signal,
      path: "/nonexistent",
      leavesProcess: true,
    });
  } catch (cause) {
    signal.throwIfAborted();
    const lines = (await readFile(log, "utf8").catch(() => "")).trim().split("\n");
    const errors = lines.filter((line) => / ERROR /.test(line)).slice(0, 3);
    throw new CommandError(`LXC did not start ${user}: ${errors.join("; ") || "no reason in its log"}`, {
      cause,
    });
  }
}
