import { askSocket, HTTP_SOCKET, isSocket } from "@nodeyard/process";
import type { Command } from "commander";
import { CommandError } from "../errors.ts";
import { printJson } from "../listing.ts";
import { type Session, stateOf } from "../session.ts";

/** `nodeyard dashboard`: only for who may use the socket in the state folder, so the operator of that machine. */
export function defineDashboard(command: Command, session: Session): void {
  command
    .option("--json", "an object on stdout: url, expires")
    .action(async ({ json = false }: { readonly json?: boolean }) => {
      const { url, expires } = await linkOf(stateOf(session), session.machine.hostname);
      if (json) return printJson(session.io, { url, expires });
      session.io.out(`${url}\n`);
      session.io.err(`it logs one browser in as an operator, once, until ${expires}\n`);
    });
}

/**
 * A link that logs one browser in, once. The ticket stands behind `#`: browsers send that to no server, so that no log has it. Rejects with
 * CommandError where no process answers, or listens on no TCP address.
 */
export async function linkOf(stateFolder: string, hostname: string) {
  const socket = `${stateFolder}/${HTTP_SOCKET}`;
  // An answer of the process, or the error why there is none.
  const why = await (isSocket(socket)
    ? askSocket(socket, "/v1/session/tickets", "POST")
    : Promise.reject(new Error("there is no such socket"))
  ).catch((error: Error) => error);
  if (why instanceof Error)
    throw new CommandError(
      "cli.no_process",
      `no Nodeyard answers on ${socket} (${why.message}): start one with "nodeyard up" or "nodeyard launcher", or name its state folder with --state DIR`,
    );
  const { status, text } = why;
  const made = JSON.parse(text) as Readonly<Record<"ticket" | "expires" | "detail", string>> & {
    readonly address: string | null;
  };
  if (status !== 201) throw new CommandError("cli.no_ticket", `no link is made: ${made.detail}`);
  if (made.address === null)
    throw new CommandError(
      "cli.no_page",
      `the Nodeyard on ${stateFolder} listens on no TCP address, which browsers need: start it with --webapp HOST:PORT`,
    );
  // A browser cannot open the wildcard address; use the host name.
  const address = made.address.replace(/\/\/(0\.0\.0\.0|\[::\])(?=:|$)/, `//${hostname}`);
  return { url: `${address}/#ticket=${made.ticket}`, expires: made.expires };
}
