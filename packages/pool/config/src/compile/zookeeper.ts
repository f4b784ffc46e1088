import type { Entry } from "@nodeyard/driver";
import type { Secure, Top } from "../table.ts";
import type { ZookeeperConfig } from "../types.ts";

/**
 * Servers and TLS from the main file, or from the secure file when it has any (docs/contract/config.md, "Secure file"): each as a
 * whole, never mixed.
 */
export function compileZookeeper(main: Entry<Top>, secure: Entry<Secure> | undefined): ZookeeperConfig {
  const hasServers = secure !== undefined && secure.zookeeperServers.length > 0;
  const listed = (hasServers ? secure : main).zookeeperServers;
  const servers = listed.map(({ host, port }) => ({ host, port }));
  const hasTls = Object.keys(secure?.at.mapping("zookeeper-tls") ?? {}).length > 0;
  return {
    servers,
    chroot: chrootOf(listed),
    tls: tlsOf(hasTls ? secure! : main, servers.length > 0),
    timeoutMs: main.zookeeperTimeoutMs,
  };
}

/** One chroot for all: on the last server as the old format has it, or the same on several. */
function chrootOf(servers: Top["zookeeperServers"]): string {
  let chroot = "";
  for (const { at, chroot: own } of servers) {
    if (own === "") continue;
    if (chroot !== "" && own !== chroot)
      at.error("chroot", `is ${own}, but another server has ${chroot}; all servers share one`);
    chroot = own;
  }
  return chroot;
}

/** Null for plain TCP, which is a warning where there are servers. All three files or none. */
function tlsOf(
  { at, zookeeperTls: { cert, key, ca } }: Entry<Pick<Top, "zookeeperTls">>,
  isWanted: boolean,
): ZookeeperConfig["tls"] {
  if (cert !== null && key !== null && ca !== null) return { cert, key, ca };
  if (cert !== null || key !== null || ca !== null) {
    const missing = Object.entries({ cert, key, ca }).flatMap(([name, path]) =>
      path === null ? [name] : [],
    );
    at.error("zookeeper-tls", `has no ${missing.join(" and no ")}; TLS needs cert, key and ca`);
  } else if (isWanted) {
    at.warn(
      "zookeeper-servers",
      "are reached over plain TCP, because there is no zookeeper-tls; anyone on the way can read and write",
    );
  }
  return null;
}

/** What `zkCli` and kazoo take: `[2001:db8::1]:2281,zk2:2281/chroot`. */
export function connectionString({ servers, chroot }: Pick<ZookeeperConfig, "servers" | "chroot">): string {
  const hosts = servers.map(({ host, port }) => `${host.includes(":") ? `[${host}]` : host}:${port}`);
  return hosts.join(",") + chroot;
}
