import type { Lease } from "@nodeyard/model";
import { deadline, messageOf } from "@nodeyard/runtime";
import { type Command, Option } from "commander";
import { plain } from "../../listing/index.ts";
import type { Machine } from "../../machine/index.ts";
import {
  askForNodes,
  followLease,
  type LeaseProgress,
  type OperationHandles,
  readNode,
  releaseLease,
  unofferedLabels,
  youngestNode,
} from "../../operations/index.ts";
import { labelsText, parseDuration, parseLabels, parsePriority } from "../arguments.ts";
import { CommandError, Interrupted, TimedOut } from "../errors.ts";
import { printJson } from "../listing.ts";
import { patiently, rejectedAt } from "../patience.ts";
import { Progress } from "../progress.ts";
import { accessRow, sshLine } from "../rows.ts";
import { type Session, withTree } from "../session.ts";

interface RequestOptions {
  readonly for: number;
  readonly priority: string;
  readonly wait?: boolean;
  readonly keep?: boolean;
  /** Milliseconds. */
  readonly timeout?: number;
  readonly json?: boolean;
}

const HOUR_MS = 3_600_000;
/** Launchers decline a label that nobody offers within this. */
const DECLINE_MS = 5_000;
/** A launcher reports the end of a lease; waiting stops by itself only when none does. */
const EXPIRY_SLACK_MS = 10_000;

export function defineRequest(command: Command, session: Session): void {
  command
    .argument("<label...>", "LABEL or LABEL:N, for instance ubuntu-noble:2 arm-board")
    .addOption(
      new Option("--for <duration>", "how long you may keep them, waiting included (90s, 10m, 1h30m, 2d)")
        .argParser(parseDuration)
        .default(HOUR_MS, "1h"),
    )
    .addOption(
      new Option("--priority <level>", "high, normal, low, or three digits")
        .argParser(parsePriority)
        .default(parsePriority("normal"), "normal"),
    )
    .option("--wait", "wait for the nodes and show progress; Ctrl-C cancels the request")
    .option("--keep", "with --wait: Ctrl-C only stops waiting")
    .option(
      "--timeout <duration>",
      "with --wait: give up after this time, exit code 124; default: the lease",
      parseDuration,
    )
    .option("--json", "one object on stdout")
    .action((words: readonly string[], options: RequestOptions) => {
      const labels = parseLabels(words);
      return withTree(session, (handles) => request(session, handles, labels, options));
    });
}

async function request(
  session: Session,
  handles: OperationHandles,
  labels: readonly string[],
  options: RequestOptions,
): Promise<void> {
  const { io, machine } = session;
  const ask = () =>
    askForNodes(handles, {
      labels,
      owner: `${machine.user}@${machine.hostname}`,
      forMs: options.for,
      priority: options.priority,
    });
  const youngest = await youngestNode(handles);
  // Before the lease is made: a signal that comes in between must not leave it behind.
  const signals = listen(machine);
  try {
    const lease = await ask();
    if (options.wait !== true) {
      await unlessDeclined(session, handles, lease, youngest, signals.interrupted);
      if (options.json === true) printLease(session, lease, []);
      else io.out(`${lease.id}\n`);
      return;
    }
    io.err(`lease ${lease.id} asks for ${plain(labelsText(labels))}\n`);
    const start = machine.clock.monotonic();
    const progress = new Progress(io.err, () => machine.clock.monotonic() - start);
    const unwatch = handles.tree.onSession(({ state }) => progress.connection(state));
    const follow = { youngest, interrupted: signals.interrupted, onChange: progress.show.bind(progress) };
    const granted = await arrival(session, handles, lease, follow, options.timeout)
      .catch(async (error: unknown) => {
        const isGivenUp = error instanceof TimedOut || error instanceof Interrupted;
        if (isGivenUp && options.keep !== true) await giveBack(session, handles, lease);
        else if (isGivenUp)
          io.err(`lease ${lease.id} continues; release it with: nodeyard release ${lease.id}\n`);
        throw error;
      })
      .finally(unwatch);
    try {
      await printGranted(session, handles, granted, options);
    } catch (error) {
      // Nobody has learnt of the nodes: whoever called us cannot give them back.
      if (options.keep !== true) await giveBack(session, handles, granted);
      throw new CommandError(
        "cli.not_told",
        `cannot print the nodes of lease ${granted.id}: ${messageOf(error)}`,
        {
          cause: error,
        },
      );
    }
  } finally {
    signals.ignore();
  }
}

/** A promise that rejects at the first signal; the second ends the process. */
function listen(machine: Machine): { readonly interrupted: Promise<never>; ignore(): void } {
  const { promise, reject } = Promise.withResolvers<never>();
  promise.catch(() => {});
  let isInterrupted = false;
  const ignore = machine.onSignal((signal) => {
    if (isInterrupted) machine.exit(1);
    isInterrupted = true;
    reject(new Interrupted(`stopped waiting: ${signal}`));
  });
  return { interrupted: promise, ignore };
}

/** A label that nobody offers would wait for nothing, unseen: what launchers say of it is waited for. Rejects when they decline. */
async function unlessDeclined(
  session: Session,
  handles: OperationHandles,
  lease: Lease,
  youngest: string,
  interrupted: Promise<never>,
): Promise<void> {
  const { offered, unknown } = await unofferedLabels(handles, lease.labels);
  if (unknown.length === 0) return;
  try {
    const follow = { youngest, interrupted, onChange: () => {} };
    if (offered.length > 0) await arrival(session, handles, lease, follow, DECLINE_MS);
  } catch (error) {
    if (error instanceof Interrupted) await giveBack(session, handles, lease);
    if (!(error instanceof TimedOut)) throw error;
  }
  session.io.err(
    `nodeyard: no launcher offers ${plain(unknown.join(", "))} now; lease ${lease.id} waits for one\n`,
  );
}

interface Follow {
  /** The youngest node before the lease was made. */
  readonly youngest: string;
  readonly interrupted: Promise<never>;
  readonly onChange: (progress: LeaseProgress) => void;
}

/** Resolves with the granted lease. Rejects when it fails, is interrupted, or is not granted within `timeout` milliseconds. */
async function arrival(
  session: Session,
  handles: OperationHandles,
  lease: Lease,
  { youngest, interrupted, onChange }: Follow,
  timeout: number | undefined,
): Promise<Lease> {
  const { machine } = session;
  const following = followLease(handles, lease, youngest, onChange);
  // While nobody answers, the end of the lease is known here alone.
  const leaseMs = lease.expires - lease.created + EXPIRY_SLACK_MS;
  const limit = deadline(machine.clock, Math.min(timeout ?? leaseMs, leaseMs), () =>
    timeout !== undefined && timeout < leaseMs
      ? new TimedOut(`the nodes of lease ${lease.id} were not ready within ${timeout / 1_000} s (--timeout)`)
      : new CommandError("cli.expired", `lease ${lease.id} expired before its nodes were ready`),
  );
  const over = rejectedAt(limit.signal);
  try {
    const ended = await Promise.race([interrupted, following.ended, over]);
    if (ended.state === "granted") return ended;
    await releaseLease(handles, lease.id);
    throw new CommandError(
      "cli.declined",
      `lease ${lease.id} failed: every pool declined ${labelsText(lease.labels)}; "nodeyard explain ${lease.request ?? lease.id}" says why`,
    );
  } finally {
    limit.cancel();
    await patiently(machine.clock, following.close()).catch(() => {});
  }
}

/** Gives a lease back, for as long as a person waits, and says what became of it. */
async function giveBack({ io, machine }: Session, handles: OperationHandles, lease: Lease): Promise<void> {
  const { id, expires } = lease;
  try {
    await patiently(machine.clock, releaseLease(handles, id));
    io.err(`released ${id}\n`);
  } catch (error) {
    const until = new Date(expires).toISOString();
    io.err(
      `cannot release lease ${id} (${messageOf(error)}): it expires at ${until}; to release it: nodeyard release ${id}\n`,
    );
  }
}

async function printGranted(
  session: Session,
  handles: OperationHandles,
  lease: Lease,
  { json }: RequestOptions,
): Promise<void> {
  const { io } = session;
  const nodes = (await Promise.all(lease.nodes.map((id) => readNode(handles, id)))).filter(
    (node) => node !== undefined,
  );
  if (json === true) {
    printLease(session, lease, nodes.map(accessRow));
    return;
  }
  io.out(`lease ${lease.id} holds until ${new Date(lease.expires).toISOString()}\n`);
  for (const node of nodes) {
    io.out(
      `  ${node.id}  ${plain(node.type.join(","))}  ${plain(node.provider ?? "")}  ${sshLine(node) ?? plain(node.interfaceIp ?? "")}\n`,
    );
  }
  io.out(`release with: nodeyard release ${lease.id}\n`);
}

function printLease({ io }: Session, lease: Lease, nodes: readonly object[]): void {
  const { id, state, owner, labels, request, expires } = lease;
  printJson(io, {
    lease: id,
    state,
    owner,
    labels,
    request,
    expires: new Date(expires).toISOString(),
    nodes,
  });
}
