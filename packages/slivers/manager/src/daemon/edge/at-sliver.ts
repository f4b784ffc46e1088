import { spawn } from "node:child_process";
import { constants } from "node:os";
import { join } from "node:path";
import { systemClock } from "@nodeyard/runtime";
import { SliverClient, unixTransport } from "@nodeyard/sliver-protocol";
import { MachineError } from "../../errors.ts";
import { Cgroups } from "../../isolation/cgroups/edge/cgroups.ts";
import { howToInstall, PATH } from "../../isolation/edge/run.ts";
import { CONFIG_FILE } from "../../isolation/lxc/edge/launch.ts";
import { SliverFolders } from "../../isolation/lxc/edge/sliver-folders.ts";
import { namesOf, readMarkName } from "../../isolation/lxc/names.ts";
import type { DaemonConfig } from "../config.ts";

/** Operations of root on one sliver, or on a snapshot of one. The manager keeps managing the sliver, and makes and removes snapshots. */
export const VERBS = ["exec", "freeze", "thaw", "snapshot", "forget-snapshot"] as const;
export type Verb = (typeof VERBS)[number];

/**
 * exec: runs `words` (default: a shell) in a sliver as its root, on this terminal, with the sliver's capabilities, groups and filter of
 * system calls, and without the host's environment. freeze and thaw: stop its processes, or let them continue. snapshot: its manager makes
 * it an image, named by the one word. `name`: of the sliver or of its node; for forget-snapshot, of the image. Resolves with the exit code.
 * Throws MachineError.
 */
export async function atSliver(
  verb: Verb,
  { isolation: { folder, network }, runFolder }: DaemonConfig,
  name: string,
  words: readonly string[],
): Promise<number> {
  const call = async (method: string, params: readonly unknown[]) => {
    const client = new SliverClient(unixTransport(join(runFolder, "root/api.sock")));
    await client.call(method, params, new AbortController().signal);
    return 0;
  };
  if (verb === "forget-snapshot") return call("ForgetSnapshot", [name]);
  const folders = new SliverFolders(folder);
  const marks = await folders.list();
  const names = await Promise.all(marks.map(async (mark) => (await folders.read(mark))?.name ?? ""));
  // By the sliver's name, or by the node's id, with which the names that driver-sliver makes begin.
  const at = names.findIndex((one) => one === name || one.startsWith(`n${name}_`));
  const ref = readMarkName(marks[at] ?? "");
  if (ref === undefined)
    throw new MachineError(`there is no sliver ${name} here; there is ${names.join(", ") || "none"}`);
  if (verb === "snapshot") return call("Snapshot", [names[at], words[0]]);
  // Without the manager, so that it also works when the manager is stopped or hangs.
  if (verb !== "exec") {
    await (await Cgroups.detect(systemClock)).freeze(marks[at]!, verb === "freeze");
    return 0;
  }
  const own = folders.path(marks[at]!);
  const to = ["-n", namesOf(ref.index, network).user, "-P", own, "-f", join(own, CONFIG_FILE)];
  const environment = ["--clear-env", "-v", `PATH=${PATH}`, "-v", "HOME=/root"];
  const command = words.length === 0 ? [] : ["--", ...words];
  const child = spawn("lxc-attach", [...to, ...environment, ...command], {
    stdio: "inherit",
    env: { PATH, TERM: process.env.TERM },
  });
  return new Promise((resolve, reject) => {
    child.on("error", (cause) => reject(new MachineError(howToInstall("lxc-start"), { cause })));
    // As a shell reports a program that a signal ended.
    child.on("exit", (code, signal) => resolve(code ?? 128 + constants.signals[signal!]));
  });
}
