import { UnsafeTextError } from "../../errors.ts";
import type { Names } from "../lxc/names.ts";

/**
 * nftables table of all slivers. Other tables are never changed. Its chains come one step before those of the host (priority filter -
 * 1), so a packet that is dropped here reaches none of them.
 */
export const TABLE = "nodeyard-slivers";

/** The rules of a sliver at the host's end of its cable. */
export interface SliverRules extends Pick<Names, "device" | "address" | "chain"> {
  /** Absent: all IPv6 of it is dropped. */
  readonly address6?: string | undefined;
  /** New connections above this number are dropped. */
  readonly connections: number;
  /** Port of the machine that is forwarded to its SSH server; absent: none. */
  readonly published?: number;
}

/** Outgoing traffic of slivers: through one interface, translated to its address. */
export interface Outbound {
  readonly device: string;
  readonly network: string;
  readonly refuse: readonly string[];
  /** Name servers that slivers may ask even in a refused range, because some clouds have theirs next to the metadata service. */
  readonly resolvers?: readonly string[];
  /** Addresses that are translated to the interface's; "routed": none, because the network knows the way to them. Absent: no IPv6. */
  readonly ipv6?: string | undefined;
}

/** An interface on which forwarding was turned on for slivers. */
export interface Forwarding {
  readonly family: "ipv4" | "ipv6";
  readonly device: string;
}

/** What neighbours ask each other on a cable. Routers' advertisements are not among it: a sliver must not be the host's router. */
const NEIGHBOURS = "icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert }";

/** The interface from which clients may log in to slivers, each by a port of this machine. */
export interface Inbound {
  readonly device: string;
}

/**
 * The common rules, which apply even before a sliver has a chain: nothing from a sliver reaches a listener of the host or another sliver,
 * except for answers (rule 11). Repeating the script keeps the chains of slivers. `closed`: interfaces that forward only for slivers, so
 * that the host does not become a router for its neighbours; ports that other programs publish (DNAT) stay open.
 */
export function frameScript(
  outbound: Outbound | undefined,
  inbound?: Inbound,
  closed: readonly Forwarding[] = [],
): string {
  const lines = [
    ...base(),
    ...["gate prerouting", "input input", "forward forward"].map((pair) => {
      const [chain, hook] = pair.split(" ");
      return `add chain inet ${TABLE} ${chain} { type filter hook ${hook} priority filter - 1; policy accept; }`;
    }),
    `add chain inet ${TABLE} world { type nat hook postrouting priority srcnat; policy accept; }`,
    ...["gate", "input", "forward", "world"].map((chain) => `flush chain inet ${TABLE} ${chain}`),
    // By the cable a packet comes through, which a sliver cannot choose, and not by its address.
    rule("gate", `iifname vmap @cables`),
    rule("gate", `iifname "ny-v*" drop`),
    rule("input", `iifname "ny-v*" ct state established,related accept`),
    ...(outbound?.ipv6 === undefined ? [] : [rule("input", `iifname "ny-v*" ${NEIGHBOURS} accept`)]),
    rule("input", `iifname "ny-v*" drop`),
    // Before every rule that accepts.
    rule("forward", `iifname "ny-v*" oifname "ny-v*" drop`),
  ];
  if (inbound !== undefined) lines.push(...publishing(inbound));
  if (outbound !== undefined) {
    const device = quotedDevice(outbound.device);
    for (const address of outbound.resolvers ?? [])
      lines.push(
        rule(
          "forward",
          `iifname "ny-v*" oifname ${device} ${to(address)} meta l4proto { tcp, udp } th dport 53 accept`,
        ),
      );
    // After the name servers and before the rest of the world.
    for (const range of outbound.refuse) lines.push(rule("forward", `iifname "ny-v*" ${to(range)} drop`));
    lines.push(
      rule("forward", `iifname "ny-v*" oifname ${device} accept`),
      rule("forward", `iifname ${device} oifname "ny-v*" ct state established,related accept`),
      rule(
        "world",
        `ip saddr ${safe("first half of an address", outbound.network)}.0.0/16 oifname ${device} masquerade`,
      ),
    );
    if (outbound.ipv6 !== undefined && outbound.ipv6 !== "routed")
      lines.push(rule("world", `ip6 saddr ${range6(outbound.ipv6)} oifname ${device} masquerade`));
  }
  lines.push(rule("forward", `iifname "ny-v*" drop`), rule("forward", `oifname "ny-v*" drop`));
  for (const { family, device } of closed)
    lines.push(
      rule(
        "forward",
        `iifname ${quotedDevice(device)} meta nfproto ${family} ct state new ct status & dnat == 0 drop`,
      ),
    );
  return `${lines.join("\n")}\n`;
}

/** Allows connections through published ports, and their answers. A packet that is routed directly to a sliver's address is dropped. */
function publishing(inbound: Inbound): string[] {
  const device = quotedDevice(inbound.device);
  return [
    ports(),
    `add chain inet ${TABLE} publish { type nat hook prerouting priority dstnat; policy accept; }`,
    `flush chain inet ${TABLE} publish`,
    rule("publish", `iifname ${device} fib daddr type local dnat ip to tcp dport map @ports`),
    rule("forward", `iifname ${device} oifname "ny-v*" ct status dnat accept`),
    rule("forward", `iifname "ny-v*" oifname ${device} ct direction reply ct status dnat accept`),
  ];
}

/** From the machine's port to the address and port of a sliver's SSH server. */
function ports(): string {
  return `add map inet ${TABLE} ports { type inet_service : ipv4_addr . inet_service; }`;
}

/** One entry of that map. */
function portOf(address: string, published: number): string {
  return `ports { ${safe("port", published)} : ${safe("IPv4 address", address)} . 22 }`;
}

/** Makes or changes the rules of one sliver, in one transaction. */
export function sliverScript(rules: SliverRules): string {
  const { device, address, address6, chain, connections, published } = rules;
  const name = safe("chain of a sliver", chain);
  const own6 = address6 === undefined ? "" : safe("IPv6 address", address6);
  const lines = [
    `add chain inet ${TABLE} ${name}`,
    `flush chain inet ${TABLE} ${name}`,
    rule(name, `ip saddr != ${safe("IPv4 address", address)} counter drop`),
    ...(address6 === undefined
      ? [rule(name, `meta nfproto ipv6 drop`)]
      : [
          rule(name, `ip6 saddr { fe80::/10, ${own6} } ${NEIGHBOURS} accept`),
          rule(name, `ip6 saddr != ${own6} counter drop`),
        ]),
    rule(name, `ct state new ct count over ${safe("number of connections", connections)} counter drop`),
  ];
  lines.push(
    rule(name, "accept"),
    `add element inet ${TABLE} cables { ${quotedDevice(device)} : jump ${name} }`,
  );
  if (published !== undefined) lines.push(`add element inet ${TABLE} ${portOf(address, published)}`);
  return `${lines.join("\n")}\n`;
}

/**
 * Removes the rules of one sliver, in one transaction that may be repeated: it adds everything before deleting it, because nft fails to
 * delete what does not exist.
 */
export function removalScript({
  device,
  chain,
  address,
  published,
}: Pick<SliverRules, "device" | "chain" | "address" | "published">): string {
  const name = safe("chain of a sliver", chain);
  const element = quotedDevice(device);
  const lines = [
    ...base(),
    `add chain inet ${TABLE} ${name}`,
    `add element inet ${TABLE} cables { ${element} : jump ${name} }`,
    `delete element inet ${TABLE} cables { ${element} }`,
    `flush chain inet ${TABLE} ${name}`,
    `delete chain inet ${TABLE} ${name}`,
  ];
  if (published !== undefined)
    lines.push(
      ports(),
      `add element inet ${TABLE} ${portOf(address, published)}`,
      `delete element inet ${TABLE} ${portOf(address, published)}`,
    );
  return `${lines.join("\n")}\n`;
}

/** The table, and the map from each cable to its sliver's chain. "add" changes nothing that is there already. */
function base(): string[] {
  return [`add table inet ${TABLE}`, `add map inet ${TABLE} cables { type ifname : verdict; }`];
}

/** Rules have no names, so a chain is flushed before its rules are added again. */
function rule(chain: string, text: string): string {
  return `add rule inet ${TABLE} ${chain} ${text}`;
}

/** Grammars of the values in texts that nft, ip and tc read as root (rule 11). */
const GRAMMARS = {
  "chain of a sliver": /^s[1-9]\d{0,3}$/,
  "name of an interface": /^[A-Za-z][A-Za-z0-9_.-]{0,14}$/,
  "IPv4 address": /^(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.(?!$)|$)){4}$/,
  "IPv6 address": /^[0-9a-f]{0,4}(?::[0-9a-f]{0,4}){2,7}$/,
  "length of a prefix": /^(?:[12]?\d|3[0-2])$/,
  "length of an IPv6 prefix": /^(?:\d{1,2}|1[01]\d|12[0-8])$/,
  "first half of an address": /^\d{1,3}\.\d{1,3}$/,
  port: /^[1-9]\d{3,4}$/,
  "number of connections": /^[1-9]\d{0,9}$/,
} as const;

/** The value as text. Throws UnsafeTextError when it does not match its grammar. */
export function safe(what: keyof typeof GRAMMARS, value: string | number): string {
  const text = String(value);
  if (!GRAMMARS[what].test(text)) throw new UnsafeTextError(`${JSON.stringify(text)} is no ${what}`);
  return text;
}

/** In quotes: a name such as `ip` would be read as a word of nft. */
function quotedDevice(value: string): string {
  return `"${safe("name of an interface", value)}"`;
}

/** Matches packets to an address or a range of either family. */
function to(value: string): string {
  if (value.includes(":"))
    return `ip6 daddr ${value.includes("/") ? range6(value) : safe("IPv6 address", value)}`;
  return `ip daddr ${value.includes("/") ? cidr(value) : safe("IPv4 address", value)}`;
}

/** An IPv6 range with both parts checked. */
function range6(value: string): string {
  const [address = "", bits = ""] = value.split("/");
  return `${safe("IPv6 address", address)}/${safe("length of an IPv6 prefix", bits)}`;
}

/** An IPv4 range with both parts checked. */
function cidr(value: string): string {
  const [address = "", bits = ""] = value.split("/");
  return `${safe("IPv4 address", address)}/${safe("length of a prefix", bits)}`;
}
