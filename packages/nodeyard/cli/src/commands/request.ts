import type { Pairing } from "@nodeyard/model";
import { plain } from "@nodeyard/operations/listing";
import { messageOf } from "@nodeyard/runtime";
import { type Command, Option } from "commander";
import { parseDuration, parseLabels, parsePairing, parsePriority } from "../arguments.ts";
import type { Backend, LeaseRow } from "../backend/backend.ts";
import { withBackend } from "../backend/with-backend.ts";
import { CommandError, Interrupted, TimedOut } from "../errors.ts";
import { type Asked, askAndUse, awaitNodes, giveBack, type LeaseOptions, unknownLabels } from "../leasing.ts";
import { printJson } from "../listing.ts";
import type { Session } from "../session.ts";
import { sshLine } from "../ssh-words.ts";

interface RequestOptions extends LeaseOptions {
  readonly wait?: boolean;
  /** With `--wait`: a wait that is given up leaves the lease, for a later `list --leases` or `release`. */
  readonly keep?: boolean;
  readonly json?: boolean;
}

/** Milliseconds: the default of `--for`. */
const HOUR_MS = 3_600_000;
/** Launchers decline a label that no pool offers within this time, milliseconds. */
const DECLINE_MS = 5_000;

/**
 * Options of `request`, `run` and `shell`, which lease nodes. Times are milliseconds when they are parsed. `beside`: what `--timeout` has an
 * effect with, as the begin of its help.
 */
export function addLeaseOptions(command: Command, beside = ""): Command {
  return command
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
    .option("--project <name>", "what the job is about, where labels have caches for each project")
    .option("--branch <name>", "the same for branches")
    .option(
      "--timeout <duration>",
      `${beside}wait no longer for the nodes, exit code 124; default: the lease`,
      parseDuration,
    );
}

/** `nodeyard request`: without `--wait` it prints the lease's id and ends; the nodes come, or the lease expires. */
export function defineRequest(command: Command, session: Session): void {
  addLeaseOptions(command, "with --wait: ")
    .argument("<label...>", "LABEL or LABEL:N, for instance ubuntu-noble:2 arm-board")
    .option("--mixed", "each label may come from a pool of its own, all together or not at all")
    .option(
      "--same <fact>",
      "as --mixed, with nodes that agree in zone, provider or a node attribute; FACT=LABEL,LABEL: only these",
      (text, rules: readonly Pairing[] = []) => [...rules, parsePairing(text)],
    )
    .option("--wait", "wait for the nodes and show progress; Ctrl-C cancels the request")
    .option("--keep", "with --wait: Ctrl-C only stops waiting")
    .option("--json", "one object on stdout")
    .action((words: readonly string[], options: RequestOptions) => {
      const labels = parseLabels(words);
      return withBackend(session, (backend) => request(session, backend, labels, options));
    });
}

/** Asks, and with `--wait` prints the nodes. Until they are printed, a failure gives the lease back. */
async function request(
  session: Session,
  backend: Backend,
  labels: readonly string[],
  options: RequestOptions,
): Promise<void> {
  const { io } = session;
  await askAndUse(session, backend, labels, options, async (asked) => {
    const { lease } = asked;
    if (options.wait !== true) {
      await unlessDeclined(session, backend, asked);
      if (options.json === true) printLease(session, lease, []);
      else io.out(`${lease.id}\n`);
      return;
    }
    const granted = await awaitNodes(session, backend, asked, options);
    try {
      await printGranted(session, backend, granted, options);
    } catch (error) {
      // The caller does not know the nodes yet and could not give them back.
      if (options.keep !== true) await giveBack(session, backend, granted);
      const why = `cannot print the nodes of lease ${granted.id}: ${messageOf(error)}`;
      throw new CommandError("cli.not_told", why, { cause: error });
    }
  });
}

/** Waits until launchers had the time to decline a label that no pool offers. Rejects when they decline. */
async function unlessDeclined(session: Session, backend: Backend, { lease, granted }: Asked): Promise<void> {
  // A label that some pool offers is not waited for: that request will be served in its turn.
  const unknown = await unknownLabels(backend, lease.labels);
  if (unknown === "") return;
  try {
    // Without any pool nobody could decline.
    if ((await backend.list("list_labels")).rows.length > 0) await granted(DECLINE_MS);
  } catch (error) {
    // The caller has not seen the id of the lease, so it could not release it.
    if (error instanceof Interrupted) await giveBack(session, backend, lease);
    if (!(error instanceof TimedOut)) throw error;
  }
  session.io.err(`nodeyard: ${unknown}; lease ${lease.id} waits for a pool that does\n`);
}

/** The nodes with the line that logs in to each. Rejects when their records cannot be read; the caller then gives the lease back. */
async function printGranted(
  session: Session,
  backend: Backend,
  lease: LeaseRow,
  { json }: RequestOptions,
): Promise<void> {
  const { io } = session;
  const { items } = await backend.call("list_lease_nodes", { path: { id: lease.id } });
  if (json === true) return printLease(session, lease, items);
  io.out(`lease ${lease.id} holds until ${lease.expires}\n`);
  for (const node of items) {
    io.out(
      `  ${node.id}  ${plain(node.label.join(","))}  ${plain(node.provider ?? "")}  ${sshLine(node) ?? plain(node.interface_ip ?? "")}\n`,
    );
  }
  io.out(`release with: nodeyard release ${lease.id}\n`);
}

/** Keys are never renamed. Without `--wait` there are no nodes yet. */
function printLease({ io }: Session, lease: LeaseRow, nodes: readonly object[]): void {
  const { id, state, owner, labels, request, expires } = lease;
  printJson(io, {
    lease: id,
    state,
    owner,
    labels,
    request,
    expires,
    nodes,
  });
}
