import { BlockList, isIP } from "node:net";

type Env = Readonly<Record<string, string | undefined>>;

/**
 * The proxy that the environment names for a server; null: none. As client-go reads it (golang.org/x/net/http/httpproxy): upper case before
 * lower, never for this host, and not for what NO_PROXY lists: names with their subdomains, ".names" with subdomains alone, addresses,
 * networks, each with a port if one is given, or "*".
 */
export function proxyOf(server: string, env: Env): string | null {
  if (!URL.canParse(server)) return null;
  const { protocol, hostname, port } = new URL(server);
  const isPlain = protocol === "http:";
  const proxy = variable(env, isPlain ? "HTTP_PROXY" : "HTTPS_PROXY");
  const host = hostname.replace(/^\[|\]$/g, "").replace(/\.$/, "");
  const own = host === "localhost" || contains(["127.0.0.0/8", "::1/128"], host);
  const excepted = variable(env, "NO_PROXY")
    .split(",")
    .map((entry) => entry.trim().toLowerCase());
  const isExcepted = (entry: string) => matches(entry, host, port || (isPlain ? "80" : "443"));
  if (proxy === "" || own || excepted.some(isExcepted)) return null;
  return proxy.includes("://") ? proxy : `http://${proxy}`;
}

function variable(env: Env, name: string): string {
  return (env[name] || env[name.toLowerCase()]) ?? "";
}

function matches(entry: string, host: string, port: string): boolean {
  if (entry === "" || entry === "*") return entry === "*";
  if (entry.includes("/")) return contains([entry], host);
  // An IPv6 address alone has colons and no port.
  const [, name = entry, only = port] = isIP(entry) === 0 ? (/^\[?(.*?)\]?:(\d+)$/.exec(entry) ?? []) : [];
  if (only !== port) return false;
  const domain = name.replace(/^\*(?=\.)/, "");
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
