import { rm } from "node:fs/promises";
import { hostname } from "node:os";
import {
  backoff,
  type Clock,
  deadline,
  messageOf,
  type Random,
  sleep,
  textIfExists,
} from "@nodeyard/runtime";
import {
  CONTROL_USER,
  type KeySet,
  parseKeySet,
  SliverClient,
  unixTransport,
} from "@nodeyard/sliver-protocol";
import { z } from "zod";
import { CommandError, EnrolError } from "../../errors.ts";
import { writeAtomic } from "../../isolation/edge/files.ts";
import { IMAGE_PROGRAMS, LAYOUT, PROGRAMS, partsOf, sliverdJson } from "../parts.ts";
import { type EnrolPlan, planEnrolment } from "../plan.ts";
import { checkSameLauncher, type EnrolSettings } from "../settings.ts";
import { bundleName, carryOut } from "./carry-out.ts";
import { hasSystemd, look, uidOf } from "./look.ts";
import { reloadSshd, service, wrongSshd } from "./service.ts";

/** The answer of `sliver-enrol`, one line of JSON. */
export interface Enrolled {
  readonly node: string;
  /** What was done, or what a plan would do. */
  readonly changes: readonly string[];
  readonly missingPackages: readonly string[];
  readonly notes: readonly string[];
}

/** Stands for the user id of a user that does not exist yet. The file is written again when it exists. */
const NO_UID = 0;
/** Time limits in milliseconds. */
const PACKAGES_MS = 900_000;
const COMMANDS_MS = 60_000;
const ANSWER_MS = 60_000;

/** The plan of an enrolment. Changes nothing. */
export async function plan(settings: EnrolSettings, from: string, clock: Clock): Promise<Enrolled> {
  const { node, plan } = await planned(settings, from, clock);
  return { node: node ?? "", changes: describe(plan), missingPackages: plan.missing, notes: [] };
}

/**
 * Makes this machine a sliver host. A second run changes nothing, and one after an interruption continues: each part is compared with
 * what is there. Resolves when the daemon answers; in an image none is started. Throws EnrolError, CommandError.
 */
export async function apply(
  settings: EnrolSettings,
  from: string,
  { clock, random }: { readonly clock: Clock; readonly random: Random },
): Promise<Enrolled> {
  const first = await planned(settings, from, clock);
  if (first.plan.missing.length > 0)
    throw new EnrolError(
      `these packages are missing: ${first.plan.missing.join(", ")}; install them, or run this with --install-packages`,
    );
  using limit = within(clock, settings.installPackages ? PACKAGES_MS : COMMANDS_MS);
  const notes: string[] = [];
  // The user is made first, because the daemon's file contains its id.
  for (const { part } of first.plan.changes.filter(
    ({ part }) => part.kind === "packages" || part.kind === "user",
  ))
    await carryOut(part, limit.signal);
  const { node, plan } = await planned(settings, from, clock, first.installs);
  // Marks the start as due: if this run is interrupted from here on, the next one starts the daemon.
  if (plan.service !== "none") await writeAtomic(LAYOUT.due, "");
  for (const { part } of plan.changes) await carryOut(part, limit.signal);
  if (first.plan.sshd) {
    const wrong = await wrongSshd(limit.signal);
    if (wrong !== undefined) notes.push(wrong);
    notes.push(...(await reloadSshd(clock, limit.signal)));
  }
  if (plan.service === "restart") await service.stop(clock, limit.signal);
  if (plan.service !== "none") {
    await service.start(limit.signal);
    await rm(LAYOUT.due, { force: true });
    notes.push(service.atBoot());
  }
  if (!settings.image && node !== undefined) await answers(node, clock, random);
  return { node: node ?? "", changes: describe(first.plan), missingPackages: [], notes };
}

/**
 * Compares this machine with what the settings need. Throws EnrolError when it belongs to another launcher or has another node id. A
 * key set that is newer than the one in the settings is kept.
 */
async function planned(
  settings: EnrolSettings,
  from: string,
  clock: Clock,
  /** Packages that were just installed. */
  fresh: readonly string[] = [],
): Promise<{ node: string | undefined; plan: EnrolPlan; installs: readonly string[] }> {
  const before = presentConfig();
  // First: nothing of another launcher's machine may be changed, not even planned.
  checkSameLauncher(before?.keySet, settings, Math.floor(clock.now() / 1000));
  // An image of a machine gets its id when a machine is made of it.
  const node = before?.node ?? settings.node ?? (settings.image ? undefined : hostname());
  if (settings.node !== undefined && settings.node !== node)
    throw new EnrolError(
      `this machine is enrolled as ${node}, not ${settings.node}; undo that first: nodeyard sliverd uninstall`,
    );
  const keySet = newer(before?.keySet, settings.keySet);
  const installed = installedPackages();
  const programs = settings.backEnd === "container" ? { ...PROGRAMS, ...IMAGE_PROGRAMS } : PROGRAMS;
  const missing = look([], programs, false).missingPackages;
  const installs = settings.installPackages ? missing : [];
  const record = { v: 1, packages: [...new Set([...installed, ...fresh, ...installs])].sort() };
  const parts = partsOf({
    bundle: bundleName(from),
    from,
    config: sliverdJson(settings, node, keySet, uidOf(CONTROL_USER) ?? NO_UID),
    systemd: settings.image || hasSystemd(),
    record: `${JSON.stringify(record)}\n`,
  });
  using limit = within(clock, COMMANDS_MS);
  const running = !settings.image && (await service.running(limit.signal));
  return { node, installs, plan: planEnrolment(parts, look(parts, programs, running), settings) };
}

/** The plan for a person, in the order in which it is carried out. */
function describe({ changes, sshd, service: what }: EnrolPlan): string[] {
  return [
    ...changes.map((change) => change.what),
    ...(sshd ? ["have sshd read its configuration again"] : []),
    ...(what === "none" ? [] : [`${what} sliverd`]),
  ];
}

/** Waits until the manager answers on its own socket with its node id. */
async function answers(node: string, clock: Clock, random: Random): Promise<void> {
  using limit = deadline(clock, ANSWER_MS, () => new EnrolError("no answer in time"));
  const client = new SliverClient(unixTransport(`${LAYOUT.run}/root/api.sock`));
  let last: unknown;
  try {
    for (let attempt = 0; ; attempt++) {
      try {
        const status = await client.status(limit.signal);
        if (status.node === node) return;
        last = new EnrolError(`${status.node} answers`);
      } catch (error) {
        last = error;
      }
      await sleep(clock, backoff(random, attempt, 50, 1_000), limit.signal);
    }
  } catch {
    const log =
      textIfExists(LAYOUT.log)?.trim().split("\n").slice(-3).join("; ") ??
      "see: journalctl -u nodeyard-sliverd";
    throw new EnrolError(`sliverd was started but does not answer (${messageOf(last)}): ${log}`, {
      cause: last,
    });
  }
}

/**
 * The node id and the trusted keys of an earlier enrolment; undefined: there was none. A file that cannot be read is an error, because
 * its key set must not be lost.
 */
function presentConfig(): { node: string | undefined; keySet: KeySet } | undefined {
  const text = textIfExists(LAYOUT.config);
  if (text === undefined) return undefined;
  try {
    const { node = textIfExists(`${LAYOUT.state}/node-id`)?.trim(), keySet } = JSON.parse(text) as {
      node?: string;
      keySet: unknown;
    };
    return { node, keySet: parseKeySet(keySet) };
  } catch (cause) {
    throw new EnrolError(`${LAYOUT.config} cannot be read: ${messageOf(cause)}; correct or remove it`, {
      cause,
    });
  }
}

function newer(present: KeySet | undefined, next: KeySet): KeySet {
  return present !== undefined && present.version > next.version ? present : next;
}

/** A deadline for the programs of an enrolment. */
export function within(clock: Clock, ms: number) {
  return deadline(clock, ms, () => new CommandError(`it took more than ${ms / 1000} s`));
}

/** Packages that were installed for slivers and are kept. Throws EnrolError. */
export function installedPackages(): readonly string[] {
  const text = textIfExists(LAYOUT.record);
  if (text === undefined) return [];
  try {
    return z.object({ packages: z.array(z.string()) }).parse(JSON.parse(text)).packages;
  } catch (cause) {
    throw new EnrolError(
      `${LAYOUT.record} does not say which packages were installed here; correct or remove it`,
      { cause },
    );
  }
}
