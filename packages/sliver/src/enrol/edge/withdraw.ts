import { existsSync, lstatSync } from "node:fs";
import { rm } from "node:fs/promises";
import { type Clock, messageOf } from "@nodeyard/runtime";
import { run } from "../../isolation/edge/run.ts";
import { EnrolError } from "../errors.ts";
import { CONTROL_USER, LAYOUT } from "../layout.ts";
import { REMOVED } from "../parts.ts";
import { type Enrolled, installedPackages, within } from "./enrol.ts";
import { textAt, uidOf } from "./look.ts";
import { service } from "./service.ts";
import { reloadSshd } from "./sshd.ts";

/** Ending many slivers takes its time. Milliseconds. */
const DISMANTLE_MS = 600_000;

/**
 * Takes back everything that enrolment made, slivers included: after it the machine is as before. Run again, or on a machine that was
 * never enrolled, it changes nothing. Throws EnrolError, CommandError.
 */
export async function withdraw(clock: Clock, dryRun: boolean): Promise<Enrolled> {
  const limit = within(clock, DISMANTLE_MS);
  const paths = REMOVED.filter((path) => lstatSync(path, { throwIfNoEntry: false }) !== undefined);
  const hasUser = uidOf(CONTROL_USER) !== undefined;
  const sshd = paths.includes(LAYOUT.sshd);
  const node = (JSON.parse(textAt(LAYOUT.config) ?? "{}") as { node?: string }).node ?? "";
  const packages = installedPackages();
  const notes =
    packages.length === 0
      ? []
      : [`these packages were installed for slivers and stay: ${packages.join(" ")}`];
  try {
    const running = await service.running(limit.signal);
    const changes = [
      ...(running ? ["stop sliverd"] : []),
      ...(existsSync(LAYOUT.config) ? ["end every sliver, and remove their files, rules and groups"] : []),
      ...paths.map((path) => `remove ${path}`),
      ...(hasUser ? [`remove the user ${CONTROL_USER}`] : []),
      ...(sshd ? ["have sshd read its configuration again"] : []),
    ];
    if (dryRun) return { node, changes, missingPackages: [], notes };
    await service.stop(clock, limit.signal);
    if (existsSync(LAYOUT.config) && existsSync(LAYOUT.current)) await dismantle(limit.signal);
    for (const path of paths) await rm(path, { recursive: true, force: true });
    await service.forget(limit.signal);
    if (hasUser) await run(["userdel", CONTROL_USER], { signal: limit.signal });
    const left = sshd ? await reloadSshd(limit.signal) : [];
    return { node, changes, missingPackages: [], notes: [...notes, ...left] };
  } finally {
    limit.cancel();
  }
}

/** By the program that made them: its back end knows its own marks. */
async function dismantle(signal: AbortSignal): Promise<void> {
  try {
    await run([`${LAYOUT.current}/sliverd`, "--dismantle", "--config", LAYOUT.config], { signal });
  } catch (cause) {
    throw new EnrolError(`slivers could not be ended, so nothing was removed: ${messageOf(cause)}`, {
      cause,
    });
  }
}
