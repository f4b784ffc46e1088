import type { Reader } from "@nodeyard/driver";
import type { ZookeeperConfig } from "../types.ts";

const DEFAULT_PORT = 2281;
const DEFAULT_TIMEOUT_SECONDS = 10;

/** Servers from `main`, or from the secure file when it has any (docs/contract/config.md, "Secure file"). */
export function compileZookeeper(main: Reader, secure: Reader | undefined): ZookeeperConfig {
  const serversFrom =
    secure?.has("zookeeper-servers") && secure.mappings("zookeeper-servers").length > 0 ? secure : main;
  const { servers, chroot } = readServers(serversFrom);
  const tlsFrom = Object.keys(secure?.mapping("zookeeper-tls") ?? {}).length > 0 ? secure! : main;
  return {
    servers,
    chroot,
    tls: readTls(tlsFrom, servers.length > 0),
    timeoutMs: readTimeout(main),
  };
}

function readTimeout(main: Reader): number {
  if (main.raw["zookeeper-timeout"] === null)
    main.error("zookeeper-timeout", "has no value; write seconds, or remove the key");
  const ms = main.milliseconds("zookeeper-timeout", DEFAULT_TIMEOUT_SECONDS);
  if (ms > 0 && Number.isFinite(ms)) return ms;
  main.error("zookeeper-timeout", "must be a number of seconds above 0");
  return DEFAULT_TIMEOUT_SECONDS * 1000;
}

/** One chroot for all: on the last server as the old format has it, or the same on several. */
function readServers(from: Reader): Pick<ZookeeperConfig, "servers" | "chroot"> {
  let chroot = "";
  const servers = from.mappings("zookeeper-servers", true).flatMap((server) => {
    const host = server.needed("host");
    const own = server.text("chroot", "").replace(/\/+$/, "");
    if (own !== "" && !own.startsWith("/"))
      server.error("chroot", `is ${own}, but must start with a slash: /${own}`);
    if (own !== "" && chroot !== "" && own !== chroot) {
      server.error("chroot", `is ${own}, but another server has ${chroot}; all servers share one`);
    }
    if (own !== "") chroot = own;
    const port = server.number("port", DEFAULT_PORT);
    if (!Number.isInteger(port) || port < 1 || port > 65_535)
      server.error("port", "must be a port, from 1 to 65535");
    return host === undefined ? [] : [{ host: normalHost(host), port }];
  });
  return { servers, chroot };
}

/** IPv6 literals in their short form, without brackets. */
function normalHost(host: string): string {
  const bare = host.replace(/^\[(.*)\]$/, "$1");
  if (!bare.includes(":")) return host;
  try {
    return new URL(`http://[${bare}]/`).hostname.slice(1, -1);
  } catch {
    return bare;
  }
}

function readTls(from: Reader, wanted: boolean): ZookeeperConfig["tls"] {
  const tls = from.inner("zookeeper-tls");
  const [cert, key, ca] = [tls.text("cert", null), tls.text("key", null), tls.text("ca", null)];
  if (cert !== null && key !== null && ca !== null) return { cert, key, ca };
  if (cert !== null || key !== null || ca !== null) {
    const missing = Object.entries({ cert, key, ca }).flatMap(([name, value]) =>
      value === null ? [name] : [],
    );
    from.error("zookeeper-tls", `has no ${missing.join(" and no ")}; TLS needs cert, key and ca`);
  } else if (wanted) {
    from.warn(
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
