import { plain } from "@nodeyard/operations/listing";
import { messageOf } from "@nodeyard/runtime";
import type { SshLogin } from "@nodeyard/sliver-installer";
import { SliverClient, sliverPaths, unixTransport } from "@nodeyard/sliver-protocol";
import type { Command } from "commander";
import type { LeaseRow } from "../backend/backend.ts";
import { withBackend } from "../backend/with-backend.ts";
import { printJson } from "../listing.ts";
import { type Session, stateOf } from "../session.ts";
import { printSlivers, printWide } from "./sliverd-machine.ts";

/** The default socket on which a sliver manager listens for the operator of its machine. */
export const CONTROL_SOCKET = "/run/nodeyard-sliver/control/api.sock";

/**
 * What acts on sliver hosts comes with their driver, which nothing else of the program loads by name. Loaded only by these
 * commands.
 */
export const operator = () => import("@nodeyard/sliver-installer");

interface StatusOptions {
  readonly json?: boolean;
  readonly wide?: boolean;
}

/**
 * `sliverd status`. `loginOf` makes the login of the options that every command has which goes to a machine; `within` applies
 * their deadline.
 */
export function addSliverdStatus<Options extends StatusOptions>(
  command: Command,
  session: Session,
  loginOf: (host: string, options: Options) => SshLogin,
  within: (options: Options, work: (signal: AbortSignal) => Promise<void>) => Promise<void>,
): void {
  command
    .description(
      "show the slivers of a host, their caps and loans; another machine is reached with the launcher's control key",
    )
    .option("--wide", "also what each sliver uses and for whom, spares and caches, with bars")
    .option(
      "--json",
      "an array of objects on stdout: sliver, node, use, phase, caps, lends, trouble, settled; with --wide, the machine as GET /v1/sliver-machines has it",
    )
    .action((host: string | undefined, options: Options) =>
      within(options, async (signal) => {
        const client = await clientOf(session, host ?? CONTROL_SOCKET, options, loginOf);
        const report = await client.status(signal);
        const { shownMachine } = await import("@nodeyard/driver-sliver/shown");
        const machine = shownMachine(report);
        const { json = false, wide = false } = options;
        if (!wide) return printSlivers(session, machine, json);
        if (json) return printJson(session.io, machine);
        const nodes = new Set(machine.slivers.flatMap(({ node }) => node ?? []));
        printWide(session, machine, nodes.size === 0 ? [] : await leasesOf(session, nodes));
      }),
    );
}

/** The leases that hold the nodes. A sliver host need not know where its pool is: then it is said, and the rest is shown. */
async function leasesOf(session: Session, nodes: ReadonlySet<string>): Promise<readonly LeaseRow[]> {
  try {
    const { rows } = await withBackend(session, (backend) => backend.list("list_leases"));
    return rows.filter((lease) => lease.nodes.some((node) => nodes.has(node)));
  } catch (error) {
    session.io.err(`nodeyard: not known here is who has the nodes: ${plain(messageOf(error))}\n`);
    return [];
  }
}

/** A client of the sliver manager: by its socket, for a path, or over SSH with the control key. */
export async function clientOf<Options>(
  session: Session,
  host: string,
  options: Options,
  loginOf: (host: string, options: Options) => SshLogin,
): Promise<SliverClient> {
  if (host.startsWith("/")) return new SliverClient(unixTransport(host));
  const { controlClient } = await operator();
  return controlClient(loginOf(host, options), sliverPaths(stateOf(session)).controlKey);
}
