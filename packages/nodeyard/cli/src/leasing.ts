import type { Pairing } from "@nodeyard/model";
import { labelsText, msOf, plain } from "@nodeyard/operations/listing";
import { abortable, choices, deadline, defined, messageOf } from "@nodeyard/runtime";
import type { Machine } from "@nodeyard/telemetry/machine";
import type { Backend, LeaseRow } from "./backend/backend.ts";
import { CommandError, Interrupted, TimedOut } from "./errors.ts";
import { followLease, type LeaseProgress } from "./follow.ts";
import { patiently } from "./patience.ts";
import { Progress } from "./progress.ts";
import type { Session } from "./session.ts";

/** What nodes are leased with. */
export interface LeaseOptions {
  /** Milliseconds, waiting included. */
  readonly for: number;
  /** Three digits; lower is served first. */
  readonly priority: string;
  /** What the job is about. */
  readonly project?: string;
  readonly branch?: string;
  /** For the nodes to be ready, milliseconds. */
  readonly timeout?: number;
  /** Each label may come from a pool of its own; rules imply it. */
  readonly mixed?: boolean;
  readonly same?: readonly Pairing[];
}

/**
 * The wait for a lease ends this long after its expiry even if no launcher reports the end, milliseconds. Launchers end leases
 * that have expired; the slack lets their end, which comes as an event, be seen first.
 */
const EXPIRY_SLACK_MS = 10_000;

/** A lease that was asked for, and how its nodes are waited for. Valid until the `use` that got it has ended. */
export interface Asked {
  readonly lease: LeaseRow;
  /** From now on signals are the caller's to handle: without another listener they end the process. */
  ignoreSignals(): void;
  /** Resolves with the granted lease. Rejects when it fails, or is not granted within `timeout` milliseconds, or at a signal. */
  granted(timeout: number | undefined, onChange?: (progress: LeaseProgress) => void): Promise<LeaseRow>;
}

/**
 * Asks for nodes, and calls `use` with the lease. Until that has ended, the first signal makes `granted` reject and a second one
 * ends the process. Rejects as the request or `use` does; the lease is then the caller's to give back, since only it knows
 * whether it is to be kept.
 */
export async function askAndUse(
  session: Session,
  backend: Backend,
  labels: readonly string[],
  options: LeaseOptions,
  use: (asked: Asked) => Promise<void>,
): Promise<void> {
  const { machine } = session;
  // Before the lease is made: a signal that comes in between must not leave it behind.
  const { interrupted, ignore } = listen(machine);
  try {
    // Nodes that exist before the request are no progress of it: only younger ones are shown while it waits.
    const youngest = await backend.youngestNode();
    const { for: forMs, priority, project, branch, mixed, same = mixed === true ? [] : undefined } = options;
    const lease = await backend.call("create_lease", {
      body: {
        labels,
        for_seconds: Math.ceil(forMs / 1_000),
        priority,
        ...defined({ project, branch, same: same?.map((rule) => ({ ...rule, labels: [...rule.labels] })) }),
      },
    });
    const granted: Asked["granted"] = (timeout, onChange = () => {}) =>
      arrival(session, backend, lease, { interrupted, youngest, onChange }, timeout);
    await use({ lease, granted, ignoreSignals: ignore });
  } finally {
    ignore();
  }
}

/** Waits for the nodes with progress on stderr, and gives the lease back when that is given up, unless it is to be kept. */
export async function awaitNodes(
  session: Session,
  backend: Backend,
  { lease, granted }: Asked,
  { timeout, keep }: { readonly timeout?: number | undefined; readonly keep?: boolean | undefined },
): Promise<LeaseRow> {
  const { io, machine } = session;
  io.err(`lease ${lease.id} asks for ${plain(labelsText(lease.labels))}\n`);
  const start = machine.clock.monotonic();
  const progress = new Progress(io.err, () => machine.clock.monotonic() - start);
  const unwatch = backend.onConnection((state) => progress.connection(state));
  try {
    return await granted(timeout, (state) => progress.show(state));
  } catch (error) {
    // Asked while the request still waits.
    const why = error instanceof TimedOut ? await reasonOf(session, backend, lease) : undefined;
    // Any other end is the lease's own: there is nothing left to release.
    const isGivenUp = error instanceof TimedOut || error instanceof Interrupted;
    if (isGivenUp && keep !== true) await giveBack(session, backend, lease);
    else if (isGivenUp)
      io.err(`lease ${lease.id} continues; release it with: nodeyard release ${lease.id}\n`);
    if (why !== undefined && error instanceof Error)
      throw new TimedOut(`${error.message}: ${why}`, { cause: error });
    throw error;
  } finally {
    unwatch();
  }
}

/** What a lease waits for, as `explain` says it; undefined where nobody says so as soon as a person would expect. */
async function reasonOf(
  { machine }: Session,
  backend: Backend,
  { id }: LeaseRow,
): Promise<string | undefined> {
  const asked = patiently(machine.clock, backend.explain({ kind: "lease", id }));
  const found = await asked.catch(() => undefined);
  return found?.explanation?.waits_for?.meaning;
}

/** Labels that no pool offers now, each with the most similar one and those that there are; empty: all are offered. */
export async function unknownLabels(backend: Backend, labels: readonly string[]): Promise<string> {
  const offered = new Set((await backend.list("list_labels")).rows.map(({ label }) => label));
  const unknown = [...new Set(labels)].filter((label) => !offered.has(label));
  const [first] = unknown;
  return first === undefined
    ? ""
    : `no pool offers ${plain(unknown.join(", "))}; ${plain(choices(first, offered))}`;
}

/**
 * Releases a lease, waits for the result as long as a person would, and prints it. Never rejects: it runs when something else has
 * failed already, and a lease that could not be released expires.
 */
export async function giveBack(
  { io, machine }: Session,
  backend: Backend,
  lease: LeaseRow,
  commit = false,
): Promise<void> {
  const { id, expires } = lease;
  try {
    await patiently(
      machine.clock,
      backend.find("release_lease", { path: { id }, body: commit ? { commit } : {} }),
    );
    io.err(`released ${id}\n`);
  } catch (error) {
    io.err(
      `cannot release lease ${id} (${messageOf(error)}): it expires at ${expires}; to release it: nodeyard release ${id}\n`,
    );
  }
}

/** A promise that rejects at the first signal; the second ends the process. */
function listen(machine: Machine): { readonly interrupted: Promise<never>; ignore(): void } {
  const { promise, reject } = Promise.withResolvers<never>();
  promise.catch(() => {});
  let isInterrupted = false;
  const ignore = machine.onSignal((signal) => {
    // A person who presses Ctrl-C twice does not want to wait for the release; the lease expires then.
    if (isInterrupted) machine.exit(1);
    isInterrupted = true;
    reject(new Interrupted(`stopped waiting: ${signal}`));
  });
  return { interrupted: promise, ignore };
}

/** `interrupted` rejects at the first signal; `onChange` gets each step of the lease; nodes of `youngest` and older are not shown. */
interface Follow {
  readonly interrupted: Promise<never>;
  readonly youngest: string;
  readonly onChange: (progress: LeaseProgress) => void;
}

/** Resolves with the granted lease. Rejects when it fails, is interrupted, or is not granted within `timeout` milliseconds. */
async function arrival(
  session: Session,
  backend: Backend,
  lease: LeaseRow,
  { interrupted, youngest, onChange }: Follow,
  timeout: number | undefined,
): Promise<LeaseRow> {
  const { machine } = session;
  const following = followLease(backend, lease, youngest, onChange);
  // Without an answering launcher, the end of the lease is computed here.
  const leaseMs = (msOf(lease.expires) ?? 0) - (msOf(lease.created) ?? 0) + EXPIRY_SLACK_MS;
  using limit = deadline(machine.clock, Math.min(timeout ?? leaseMs, leaseMs), () =>
    timeout !== undefined && timeout < leaseMs
      ? new TimedOut(`the nodes of lease ${lease.id} were not ready within ${timeout / 1_000} s (--timeout)`)
      : new CommandError("cli.expired", `lease ${lease.id} expired before its nodes were ready`),
  );
  try {
    const ended = await abortable(Promise.race([interrupted, following.ended]), limit.signal);
    if (ended.state === "granted") return ended;
    // A failed lease is kept in the tree until it expires, for who asks why; this command has said why.
    await backend.find("release_lease", { path: { id: lease.id }, body: {} });
    const unknown = ended.why ?? (await unknownLabels(backend, lease.labels));
    throw new CommandError(
      "cli.declined",
      `lease ${lease.id} failed: ${unknown || `every pool declined ${labelsText(lease.labels)}`}; "nodeyard explain ${lease.request ?? lease.id}" says why`,
    );
  } finally {
    await patiently(machine.clock, following.close()).catch(() => {});
  }
}
