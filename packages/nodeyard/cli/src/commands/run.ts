import { makeKnownHosts, runProgram } from "@nodeyard/process";
import { messageOf } from "@nodeyard/runtime";
import type { Command } from "commander";
import { parseLabels } from "../arguments.ts";
import type { Backend } from "../backend/backend.ts";
import { withBackend } from "../backend/with-backend.ts";
import { CommandError, CommandFailed, NoNode, TimedOut, UsageError } from "../errors.ts";
import { askAndUse, awaitNodes, giveBack, type LeaseOptions } from "../leasing.ts";
import type { Session } from "../session.ts";
import { quote, SSH_LIMITS, sshWords } from "../ssh-words.ts";
import { addLeaseOptions } from "./request.ts";

interface RunOptions extends LeaseOptions {
  /** Path of a private key; absent: ssh's own choice. */
  readonly identity?: string;
}

/** `nodeyard run`: BatchMode, because a question of ssh would wait for an answer while the lease runs. */
export function defineRun(command: Command, session: Session): void {
  define(command)
    .argument("<command...>", "what to run there, after --; each word arrives as it is given")
    .action((label: string, words: readonly string[], options: RunOptions) =>
      onNode(session, label, options, ["-o", "BatchMode=yes"], words),
    );
}

/** `nodeyard shell`: ssh may ask for a passphrase here, as it may not in `run`. */
export function defineShell(command: Command, session: Session): void {
  define(command).action((label: string, options: RunOptions) => onNode(session, label, options, ["-t"], []));
}

/** What `run` and `shell` have in common: one label, and the options of a lease. */
function define(command: Command): Command {
  return addLeaseOptions(command)
    .option("--identity <file>", "private key to log in with; default: what ssh finds")
    .argument("<label>", "label of the node", (text: string) => {
      // "debian:2" is refused: ssh runs on one node.
      const [label, ...more] = parseLabels([text]);
      if (more.length > 0)
        throw new UsageError(`${JSON.stringify(text)}: one node only; request more with "nodeyard request"`);
      return label;
    });
}

/** Leases a node, runs ssh on it, and gives the lease back whatever happens. Rejects with CommandFailed, whose code is that of ssh. */
async function onNode(
  session: Session,
  label: string,
  options: RunOptions,
  sshOptions: readonly string[],
  words: readonly string[],
): Promise<void> {
  const code = await withBackend(session, (backend) =>
    leaseAndRun(session, backend, label, options, [...sshOptions], words),
  ).catch((error: unknown) => {
    // It has exit code 124, as of `timeout`; any other error before ssh runs has 125 (docs/reference/exit-codes.md).
    if (error instanceof TimedOut) throw error;
    // Any other code could be the command's.
    throw new NoNode(messageOf(error), { cause: error });
  });
  if (code !== 0) throw new CommandFailed(code);
}

/** Resolves with ssh's exit code. Rejects when there was no node, or ssh could not be started; the lease is given back in any case. */
async function leaseAndRun(
  session: Session,
  backend: Backend,
  label: string,
  options: RunOptions,
  sshOptions: string[],
  words: readonly string[],
): Promise<number> {
  let code: number | undefined;
  await askAndUse(session, backend, [label], options, async (asked) => {
    const lease = await awaitNodes(session, backend, asked, options);
    // From here on signals are for ssh, and the lease is given back when that has ended. This listener is added before the other
    // one is dropped: without any, a signal would end the process and leave the lease.
    const ignore = session.machine.onSignal(() => {});
    try {
      asked.ignoreSignals();
      const { items } = await backend.call("list_lease_nodes", { path: { id: lease.id } });
      const [node] = items;
      const login = node && sshWords(node);
      if (node === undefined || login === undefined)
        throw new CommandError(
          "cli.no_ssh",
          `node ${lease.nodes[0]} of label ${label} is not reached by SSH`,
        );
      const knownHosts = makeKnownHosts(node);
      if (options.identity !== undefined) sshOptions.push("-i", options.identity, "-o", "IdentitiesOnly=yes");
      sshOptions.push(
        "-o",
        `UserKnownHostsFile=${knownHosts.file}`,
        "-o",
        // The keys were read when the node was made: another one is not the node that was leased.
        "StrictHostKeyChecking=yes",
        ...SSH_LIMITS,
      );
      try {
        code = await runProgram("ssh", [...sshOptions, ...login, ...words.map(quote)]);
      } finally {
        knownHosts.remove();
      }
    } finally {
      // What ended well is kept in the caches of the node; a shell says nothing of that.
      await giveBack(session, backend, lease, code === 0 && words.length > 0);
      ignore();
    }
  });
  return code!;
}
