import { BadArguments } from "./errors.ts";
import { checkPath } from "./paths.ts";

/** One server. A host with several addresses is several to try. */
export interface HostAndPort {
  readonly host: string;
  readonly port: number;
}

/** What a connection string names: the servers, tried in random order, and the path that stands for "/". */
export interface ConnectionTarget {
  readonly hosts: readonly HostAndPort[];
  /** Absolute path without a trailing "/", or empty. */
  readonly chroot: string;
}

const DEFAULT_PORT = 2181;
/** An IPv6 address, with a zone such as `%eth0`. */
const BRACKETED = /^\[([0-9A-Fa-f:.%\w]+)\](?::(\d+))?$/;
const PLAIN = /^([^:[\]\s]+)(?::(\d+))?$/;

/**
 * Parses `host:port,host:port/chroot`. IPv6 addresses need brackets; a missing port is 2181. Everything from the first "/"
 * on is the chroot, which applies to all servers, as in every other ZooKeeper client. Throws BadArguments.
 */
export function parseConnectionString(text: string): ConnectionTarget {
  const slash = text.indexOf("/");
  const list = slash < 0 ? text : text.slice(0, slash);
  const chroot = slash < 0 ? "" : text.slice(slash).replace(/\/+$/, "");
  if (chroot.includes(",")) {
    throw new BadArguments(
      `${JSON.stringify(text)}: only the last server may be followed by a chroot, which then holds for all`,
    );
  }
  if (chroot !== "") checkPath(chroot);
  const hosts = list
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "")
    .map(parseHost);
  if (hosts.length === 0) throw new BadArguments(`${JSON.stringify(text)} names no server`);
  return { hosts, chroot };
}

function parseHost(part: string): HostAndPort {
  const match = BRACKETED.exec(part) ?? PLAIN.exec(part);
  if (match === null) {
    throw new BadArguments(`${JSON.stringify(part)} is not a "host:port" (put IPv6 addresses in brackets)`);
  }
  const port = match[2] === undefined ? DEFAULT_PORT : Number(match[2]);
  if (port < 1 || port > 65_535) throw new BadArguments(`${JSON.stringify(part)}: there is no port ${port}`);
  return { host: match[1]!, port };
}
