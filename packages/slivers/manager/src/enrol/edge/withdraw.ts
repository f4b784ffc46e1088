import { lstatSync, readdirSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { type Clock, messageOf, textIfExists } from "@nodeyard/runtime";
import { CONTROL_USER } from "@nodeyard/sliver-protocol";
import { parseConfig } from "../../daemon/config.ts";
import { EnrolError } from "../../errors.ts";
import { run } from "../../isolation/edge/run.ts";
import { belongings } from "../../isolation/lxc/edge/belongings.ts";
import { isolationSchema } from "../../isolation/lxc/options.ts";
import { LAYOUT, REMOVED, REMOVED_LAST } from "../parts.ts";
import { planWithdrawal } from "../plan.ts";
import { type Enrolled, installedPackages, within } from "./enrol.ts";
import { uidOf } from "./look.ts";
import { reloadSshd, removeUser, service } from "./service.ts";

/** Time limit in milliseconds; ending many slivers takes long. */
const DISMANTLE_MS = 600_000;

/**
 * Removes everything that enrolment made, slivers included, also after an interrupted enrolment or removal. The machine is then as before.
 * A second run, or a run on a machine that was never enrolled, changes nothing. `from` is the folder of the running programs. Throws
 * EnrolError, CommandError.
 */
export async function withdraw(clock: Clock, from: string, dryRun: boolean): Promise<Enrolled> {
  using limit = within(clock, DISMANTLE_MS);
  const { signal } = limit;
  const paths = [...REMOVED, ...REMOVED_LAST].filter(isThere);
  const config = readConfig();
  const sshd = paths.includes(LAYOUT.sshd) || paths.includes(LAYOUT.sshdLoaded);
  const { changes, dismantle: ends } = planWithdrawal({
    running: await service.running(signal),
    paths,
    user: uidOf(CONTROL_USER) !== undefined,
    lost: "lost" in config ? config.lost : undefined,
    slivers: "lost" in config ? await sliversHere(clock, signal) : [],
    sshd,
  });
  const node = "node" in config ? config.node : "";
  const notes = packageNotes();
  if (dryRun) return { node, changes, missingPackages: [], notes };
  // First, so that no sliver is made again while all are ended.
  await service.stop(clock, signal);
  if (ends) await dismantle(from, signal);
  // Without the file of keys, logins to the account are impossible.
  await rm(LAYOUT.keysFile, { force: true });
  for (const path of REMOVED) await rm(path, { recursive: true, force: true });
  await service.forget(signal);
  const left = sshd ? await reloadSshd(clock, signal) : [];
  await removeUser(CONTROL_USER, clock, signal);
  for (const path of REMOVED_LAST) await rm(path, { recursive: true, force: true });
  return { node, changes, missingPackages: [], notes: [...notes, ...left] };
}

/** A broken link is there too. */
function isThere(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}

/** `node` is empty when the file has no node id. */
function readConfig(): { readonly node: string } | { readonly lost: string } {
  const text = textIfExists(LAYOUT.config);
  if (text === undefined) return { lost: `${LAYOUT.config} is not there` };
  try {
    return { node: parseConfig(text, LAYOUT.config, () => "").node };
  } catch (error) {
    return { lost: messageOf(error) };
  }
}

/** Slivers on the machine, at the default places and in the records of a daemon, because they may be elsewhere by configuration. */
async function sliversHere(clock: Clock, signal: AbortSignal): Promise<readonly string[]> {
  const options = { ...isolationSchema.parse({}), link: 1, memory: 0, clock, onProgress: () => undefined };
  const found = (await belongings(options, signal)).map(({ kind, name }) => `${kind} ${name}`);
  const store = isThere(LAYOUT.state) ? readdirSync(LAYOUT.state) : [];
  const remembered = store.filter((name) => /^state\.\d\.json$/.test(name));
  return [...found, ...remembered.map((name) => `file ${join(LAYOUT.state, name)}`)];
}

/** Packages stay: other programs may have come to need them. The operator is told which. */
function packageNotes(): readonly string[] {
  try {
    const packages = installedPackages();
    return packages.length === 0
      ? []
      : [`these packages were installed for slivers and stay: ${packages.join(" ")}`];
  } catch {
    return [`packages that were installed for slivers stay; ${LAYOUT.record} does not say which`];
  }
}

/** Runs sliverd with --dismantle, because the back end knows the marks of its slivers. */
async function dismantle(from: string, signal: AbortSignal): Promise<void> {
  // The program beside this one. The installed command may be damaged or missing.
  const sliverd = ["--disable-warning=ExperimentalWarning", join(from, "sliverd.mjs")];
  try {
    await run([process.execPath, ...sliverd, "--dismantle", "--config", LAYOUT.config], { signal });
  } catch (cause) {
    throw new EnrolError(`slivers could not be ended, so nothing was removed: ${messageOf(cause)}`, {
      cause,
    });
  }
}
