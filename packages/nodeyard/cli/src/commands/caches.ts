import { plain } from "@nodeyard/operations/listing";
import { deadline, defined } from "@nodeyard/runtime";
import type { CacheReport, SliverClient } from "@nodeyard/sliver-protocol";
import type { Command } from "commander";
import { parseDuration } from "../arguments.ts";
import { CommandError } from "../errors.ts";
import { printJson } from "../listing.ts";
import type { Session } from "../session.ts";
import { cacheRow, printCaches } from "./sliverd-machine.ts";
import { CONTROL_SOCKET, clientOf } from "./sliverd-status.ts";

interface CachesOptions {
  readonly host: string;
  readonly sshConfig?: string;
  readonly timeout: string;
  readonly json?: boolean;
}

/** `nodeyard caches`: what slivers of a machine left to later ones. */
export function defineCaches(caches: Command, session: Session): void {
  verb(caches, "list", "list the caches of a sliver host, the most recently used first").action(
    (options: CachesOptions) =>
      asking(session, options, async (client, signal) =>
        printCaches(session, await cachesOf(client, signal), options.json === true),
      ),
  );
  verb(caches, "show", "show a cache")
    .argument("<cache>", "its id, or the begin of it")
    .action((id: string, options: CachesOptions) =>
      asking(session, options, async (client, signal) => {
        const row = cacheRow(one(await cachesOf(client, signal), id));
        if (options.json === true) return printJson(session.io, row);
        for (const [key, value] of Object.entries(row))
          session.io.out(`${key.padEnd(10)} ${plain(String(value))}\n`);
      }),
    );
  for (const [change, what] of [
    ["delete", "delete a cache; slivers that have a copy keep it"],
    ["pin", "keep a cache, whatever room others need"],
    ["unpin", "let a cache go when others need its room"],
  ] as const)
    verb(caches, change, what)
      .argument("<cache>", "its id, or the begin of it")
      .action((id: string, options: CachesOptions) =>
        asking(session, options, async (client, signal) => {
          const found = one(await cachesOf(client, signal), id);
          await client.call("ChangeCache", [found.id, change], signal);
          if (options.json === true) printJson(session.io, { id: found.id, change });
        }),
      );
}

function verb(caches: Command, name: string, what: string): Command {
  return caches
    .command(name)
    .description(what)
    .option(
      "--host <host>",
      "[USER@]HOST, as for ssh, or the path of the socket of this machine's sliver manager",
      CONTROL_SOCKET,
    )
    .option("--ssh-config <file>", "instead of your own ssh configuration")
    .option("--timeout <time>", "give up after this time", "1m")
    .option("--json", "an object or an array of objects on stdout; times are ISO 8601, sizes bytes");
}

async function cachesOf(client: SliverClient, signal: AbortSignal): Promise<readonly CacheReport[]> {
  return (await client.status(signal)).caches ?? [];
}

/** Throws CommandError where none or several begin so. */
function one(all: readonly CacheReport[], id: string): CacheReport {
  const [found, ...others] = all.filter((cache) => cache.id.startsWith(id));
  if (found !== undefined && others.length === 0) return found;
  throw new CommandError(
    "cli.no_cache",
    `${found === undefined ? "no cache begins" : `${others.length + 1} caches begin`} with ${id}; see "nodeyard caches list"`,
  );
}

async function asking(
  session: Session,
  { host, sshConfig, timeout }: CachesOptions,
  work: (client: SliverClient, signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const late = () => new CommandError("cli.too_late", `it took longer than ${timeout}; see --timeout`);
  using limit = deadline(session.machine.clock, parseDuration(timeout), late);
  const loginOf = (destination: string) => ({ destination, ...defined({ configFile: sshConfig }) });
  await work(await clientOf(session, host, {}, loginOf), limit.signal);
}
