import { readText, type TcpOptions } from "@nodeyard/process";
import type { Command } from "commander";
import { parseAddress } from "../arguments.ts";
import { UsageError } from "../errors.ts";

/** The ZooKeeper protocol over TCP, which a process offers that holds a tree. */
export interface ListenOptions {
  readonly listen?: { readonly host: string; readonly port: number };
  /** Paths of PEM files. All three, or none. */
  readonly tlsCert?: string;
  readonly tlsKey?: string;
  readonly tlsCa?: string;
}

export function addListenOptions(command: Command): Command {
  return command
    .option(
      "--listen <host:port>",
      "also accept ZooKeeper clients over TCP, besides the Unix socket",
      (text) => parseAddress(text, "--listen"),
    )
    .option("--tls-cert <file>", "PEM file; addresses other than loopback need all three")
    .option("--tls-key <file>", "PEM")
    .option("--tls-ca <file>", "PEM file; clients with a certificate of this CA may connect");
}

/**
 * Where ZooKeeper clients are let in by TCP; undefined: nowhere. Throws UsageError where only a part of TLS is named, or TLS
 * without an address. Whether an address may go without TLS is judged by the server of the tree.
 */
export function tcpOf({ listen, tlsCert, tlsKey, tlsCa }: ListenOptions): TcpOptions | undefined {
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
