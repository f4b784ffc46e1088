import { BlockList, isIP } from "node:net";

type Env = Readonly<Record<string, string | undefined>>;

/**
 * How official clients read the variables: client-go (golang.org/x/net/http/httpproxy), requests of openstacksdk, and urllib of botocore.
 * `python`: lower case counts first, even when it is empty; this host is no exception; ".name" is the name, too; "*" stands alone.
 */
const CLIENTS = {
  "client-go": { python: false, networks: true, all: false },
  requests: { python: true, networks: true, all: true },
  botocore: { python: true, networks: false, all: false },
} as const;

/**
 * The proxy that the environment names for an address, as the official client of its cloud reads it; null: none. HTTPS_PROXY and HTTP_PROXY
 * by the scheme, else ALL_PROXY for requests; not for what NO_PROXY lists: names with their subdomains, addresses, networks (for requests
 * those of IPv4, for botocore none), each with a port if one is given, or "*".
 */
export function proxyOf(address: string, env: Env, client: keyof typeof CLIENTS): string | null {
  if (!URL.canParse(address)) return null;
  const { python, networks, all } = CLIENTS[client];
  const variable = (name: string) => {
    const lower = env[name.toLowerCase()];
    return (python ? (lower ?? env[name]) : env[name] || lower) ?? "";
  };
  const { protocol, hostname, port } = new URL(address);
  const isPlain = protocol === "http:";
  const proxy = variable(isPlain ? "HTTP_PROXY" : "HTTPS_PROXY") || (all ? variable("ALL_PROXY") : "");
  const host = hostname.replace(/^\[|\]$/g, "").replace(/\.$/, "");
  const isOwn = !python && (host === "localhost" || contains(["127.0.0.0/8", "::1/128"], host));
  const excepted = variable("NO_PROXY")
    .split(",")
    .map((entry) => entry.trim().toLowerCase());
  const isExcepted = (entry: string) => {
    if (entry === "" || entry === "*") return entry === "*" && (!python || excepted.length === 1);
    if (entry.includes("/")) return networks && !(python && isIP(host) === 6) && contains([entry], host);
    return matches(entry, host, port || (python ? "" : isPlain ? "80" : "443"), python);
  };
  if (proxy === "" || isOwn || excepted.some(isExcepted)) return null;
  return proxy.includes("://") ? proxy : `http://${proxy}`;
}

function matches(entry: string, host: string, port: string, python: boolean): boolean {
  // An IPv6 address alone has colons and no port.
  const [, name = entry, only = port] = isIP(entry) === 0 ? (/^\[?(.*?)\]?:(\d+)$/.exec(entry) ?? []) : [];
  if (only !== port) return false;
  const domain = python ? name.replace(/^\.+/, "") : name.replace(/^\*(?=\.)/, "");
  return domain.startsWith(".") ? host.endsWith(domain) : host === domain || host.endsWith(`.${domain}`);
}

/** Whether an address is in one of the networks. A text that is no network contains nothing. */
function contains(networks: readonly string[], host: string): boolean {
  const family = isIP(host);
  const list = new BlockList();
  for (const network of networks) {
    const [address = "", bits] = network.split("/");
    const most = isIP(address) === 6 ? 128 : 32;
    if (isIP(address) === 0 || !/^\d+$/.test(bits ?? "") || Number(bits) > most) continue;
    list.addSubnet(address, Number(bits), most === 128 ? "ipv6" : "ipv4");
  }
  return family !== 0 && list.check(host, family === 6 ? "ipv6" : "ipv4");
}
