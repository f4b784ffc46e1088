import type { Command } from "commander";
import { readText, startUp, type TcpOptions, untilStopped } from "../../process/index.ts";
import { parseAddress } from "../arguments.ts";
import { CommandFailed, UsageError } from "../errors.ts";
import { logOf } from "../log.ts";
import { filesOf, type Session, stateOf } from "../session.ts";
import { addWebappOptions, frontWish, type WebappOptions } from "../webapp.ts";

interface UpOptions extends WebappOptions {
  readonly listen?: { readonly host: string; readonly port: number };
  readonly tlsCert?: string;
  readonly tlsKey?: string;
  readonly tlsCa?: string;
}

export function defineUp(command: Command, session: Session): void {
  command
    .option(
      "--listen <host:port>",
      "also accept ZooKeeper clients over TCP, besides the Unix socket",
      (text) => parseAddress(text, "--listen"),
    )
    .option("--tls-cert <file>", "PEM file; addresses other than loopback need all three")
    .option("--tls-key <file>", "PEM")
    .option("--tls-ca <file>", "PEM file; clients with a certificate of this CA may connect");
  addWebappOptions(
    command,
    "webapp of the configuration if it has one; always: http.sock in the state folder",
  ).action((options: UpOptions) => up(session, options));
}

async function up(session: Session, options: UpOptions): Promise<void> {
  const { machine } = session;
  const log = logOf(session);
  const files = filesOf(session);
  const stateFolder = stateOf(session);
  const listen = tcpOf(options);
  const front = frontWish(options, { configured: "named", socket: true });
  const wish = { stateFolder, files, ...(listen && { listen }), ...(front && { front }) };
  const exitCode = await untilStopped(machine, log, async (stopping) => {
    const running = await startUp(wish, machine, log, stopping);
    if (!stopping.aborted) log.info({ state: stateFolder, addresses: running.addresses }, "Nodeyard is up");
    return running;
  });
  if (exitCode !== 0) throw new CommandFailed(exitCode);
}

function tcpOf({ listen, tlsCert, tlsKey, tlsCa }: UpOptions): TcpOptions | undefined {
  const given = [tlsCert, tlsKey, tlsCa].filter((file) => file !== undefined).length;
  if (given === 0) return listen;
  if (listen === undefined || tlsCert === undefined || tlsKey === undefined || tlsCa === undefined)
    throw new UsageError("--tls-cert, --tls-key and --tls-ca go together, and with --listen HOST:PORT");
  const tls = {
    cert: readText(tlsCert, "the certificate"),
    key: readText(tlsKey, "the key"),
    ca: readText(tlsCa, "the authority"),
  };
  return { ...listen, tls };
}
