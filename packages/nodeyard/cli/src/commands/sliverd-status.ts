import type { ShownSliver } from "@nodeyard/driver-sliver/shown";
import { type Column, jsonOnly } from "@nodeyard/operations/listing";
import type { SshLogin } from "@nodeyard/sliver-installer";
import { SliverClient, sliverPaths, unixTransport } from "@nodeyard/sliver-protocol";
import type { Command } from "commander";
import { printRows } from "../listing.ts";
import { type Session, stateOf } from "../session.ts";

const columns: readonly Column[] = [
  { heading: "Sliver", key: "sliver" },
  { heading: "Node", key: "node" },
  { heading: "Use", key: "use" },
  { heading: "Phase", key: "phase" },
  { heading: "Caps", key: "caps", show: (row) => capsText(row as unknown as ShownSliver) },
  { heading: "Lends", key: "lends", show: (row) => lendsText(row as unknown as ShownSliver) },
  { heading: "Trouble", key: "trouble" },
];

/** The default socket on which a sliver manager listens for the operator of its machine. */
export const CONTROL_SOCKET = "/run/nodeyard-sliver/control/api.sock";

/**
 * What acts on sliver hosts comes with their driver, which nothing else of the program loads by name. Loaded only by these
 * commands.
 */
export const operator = () => import("@nodeyard/sliver-installer");

interface StatusOptions {
  readonly json?: boolean;
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
    .option(
      "--json",
      "an array of objects on stdout: sliver, node, use, phase, caps, lends, trouble, settled",
    )
    .action((host: string | undefined, options: Options) =>
      within(options, async (signal) => {
        const client = await clientOf(session, host ?? CONTROL_SOCKET, options, loginOf);
        const report = await client.status(signal);
        const { shownSlivers, updatesOf } = await import("@nodeyard/driver-sliver/shown");
        const rows = shownSlivers(report).map((one) => ({ ...one }));
        printRows(session.io, rows, columns, { json: options.json === true, jsonAlso: jsonOnly("settled") });
        if (options.json !== true) for (const line of updatesOf(report)) session.io.out(`${line}\n`);
      }),
    );
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

/** The caps in force, with the sliver's own value where it differs; of unchanged caps only the CPU's is shown. */
function capsText({ caps }: ShownSliver): string {
  return Object.entries(caps)
    .filter(([name, { own, inForce }]) => own !== inForce || (name === "cpuCap" && own > 0))
    .map(([name, { own, inForce }]) => `${name} ${inForce}${inForce === own ? "" : ` of ${own}`}`)
    .join(", ");
}

function lendsText({ lends }: ShownSliver): string {
  return lends
    .map(
      ({ to, resource, amount, refusal }) =>
        `${resource} ${amount} to ${to}${refusal === null ? "" : ` (not: ${refusal})`}`,
    )
    .join(", ");
}
