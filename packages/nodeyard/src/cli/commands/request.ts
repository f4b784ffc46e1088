import type { Lease } from "@nodeyard/model";
import { deadline, messageOf } from "@nodeyard/runtime";
import { type Command, Option } from "commander";
import { plain } from "../../listing/index.ts";
import type { Machine } from "../../machine/index.ts";
import {
  askForNodes,
  followLease,
  type OperationHandles,
  readNode,
  releaseLease,
  youngestNode,
} from "../../operations/index.ts";
import { labelsText, parseDuration, parseLabels, parsePriority } from "../arguments.ts";
import { CommandError } from "../errors.ts";
import { patiently, rejectedAt } from "../patience.ts";
import { Progress } from "../progress.ts";
import { accessRow, sshLine } from "../rows.ts";
import { type Session, withTree } from "../session.ts";

interface RequestOptions {
  readonly for: number;
  readonly priority: string;
  readonly wait?: boolean;
  readonly keep?: boolean;
  readonly json?: boolean;
}

const HOUR_MS = 3_600_000;
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
  if (options.wait !== true) {
    const lease = await ask();
    if (options.json === true) printJson(session, lease, []);
    else io.out(`${lease.id}\n`);
    return;
  }
  const youngest = await youngestNode(handles);
  // Before the lease is made: a signal that comes in between must not leave it behind.
  const signals = listen(machine);
  try {
    const lease = await ask();
    io.err(`lease ${lease.id} asks for ${plain(labelsText(labels))}\n`);
    const granted = await arrival(session, handles, lease, youngest, signals.interrupted, options);
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

/** A promise that rejects at the first SIGINT or SIGTERM; the second ends the process. */
function listen(machine: Machine): { readonly interrupted: Promise<never>; ignore(): void } {
  const { promise, reject } = Promise.withResolvers<never>();
  promise.catch(() => {});
  const ignore = machine.onSignal((signal, before) => {
    if (before > 0) machine.exit(1);
    reject(new CommandError("cli.interrupted", `stopped waiting: ${signal}`));
  });
  return { interrupted: promise, ignore };
}

/** Resolves with the granted lease. A signal gives the lease back first, unless it is to be kept. */
async function arrival(
  session: Session,
  handles: OperationHandles,
  lease: Lease,
  youngest: string,
  interrupted: Promise<never>,
  { keep }: RequestOptions,
): Promise<Lease> {
  const { io, machine } = session;
  const start = machine.clock.monotonic();
  const progress = new Progress(io.err, () => machine.clock.monotonic() - start);
  const following = followLease(handles, lease, youngest, (state) => progress.show(state));
  // While nobody answers, the end of the lease is known here alone.
  const limit = deadline(
    machine.clock,
    lease.expires - lease.created + EXPIRY_SLACK_MS,
    () => new CommandError("cli.expired", `lease ${lease.id} expired before its nodes were ready`),
  );
  const over = rejectedAt(limit.signal);
  const unwatch = handles.tree.onSession(({ state }) => progress.connection(state));
  try {
    const ended = await Promise.race([interrupted, following.ended, over]);
    if (ended.state === "granted") return ended;
    await releaseLease(handles, lease.id);
    throw new CommandError(
      "cli.declined",
      `lease ${lease.id} failed: every pool declined ${labelsText(lease.labels)}; "nodeyard explain ${lease.request ?? lease.id}" says why`,
    );
  } catch (error) {
    if (error instanceof CommandError && error.code === "cli.interrupted") {
      if (keep === true)
        io.err(`lease ${lease.id} continues; release it with: nodeyard release ${lease.id}\n`);
      else await giveBack(session, handles, lease);
    }
    throw error;
  } finally {
    limit.cancel();
    unwatch();
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
    printJson(session, lease, nodes.map(accessRow));
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

function printJson({ io }: Session, lease: Lease, nodes: readonly object[]): void {
  const { id, state, owner, labels, request, expires } = lease;
  const text = JSON.stringify(
    { lease: id, state, owner, labels, request, expires: new Date(expires).toISOString(), nodes },
    null,
    2,
  );
  io.out(`${text}\n`);
}
