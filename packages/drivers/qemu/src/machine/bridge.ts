import { createHash } from "node:crypto";
import { METADATA } from "./firewall.ts";

/** Names and addresses of a machine on the bridge, all derived from its number. */
export interface Port {
  /** Name of the interface in the bridge's namespace. */
  readonly tap: string;
  readonly mac: string;
  readonly address: string;
  /** The host's address on the link. */
  readonly gateway: string;
  readonly prefix: number;
}

/** An IPv4 network of machines. The first address is the host's; each further one is a machine's. */
export interface Subnet {
  /** The network address as a number; the host part is 0. */
  readonly base: number;
  readonly prefix: number;
}

/** Parses "10.93.0.0/24"; undefined for a text that is not a network of 5 to 16,381 machines, or is one of loopback or multicast. */
export function parseSubnet(text: string): Subnet | undefined {
  const match = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})\/(\d{1,2})$/.exec(text);
  if (match === null) return undefined;
  const [a, b, c, d, prefix] = match.slice(1).map(Number) as [number, number, number, number, number];
  if ([a, b, c, d].some((part) => part > 255) || a === 0 || a === 127 || a >= 224) return undefined;
  const base = ((a * 256 + b) * 256 + c) * 256 + d;
  return prefix < 18 || prefix > 29 || base % 2 ** (32 - prefix) !== 0 ? undefined : { base, prefix };
}

/** Numbers of machines, without the network address, the host and the broadcast address. */
export function numbersOf({ prefix }: Subnet): { readonly first: number; readonly last: number } {
  return { first: 2, last: 2 ** (32 - prefix) - 2 };
}

/** Everything about a machine's port, from its number. Nothing is stored but the number (`Numbers`). */
export function portOf(subnet: Subnet, number: number): Port {
  const hex = (subnet.base + number).toString(16).padStart(8, "0");
  return {
    tap: `tap${number}`,
    // Locally administered; unique because the address is.
    mac: ["02", "4e", ...(hex.match(/../g) as string[])].join(":"),
    address: dotted(subnet.base + number),
    gateway: dotted(subnet.base + 1),
    prefix: subnet.prefix,
  };
}

/** Names of the folder's namespace and of its link on the host. A hash, because an interface's name has 15 characters at most. */
export function bridgeNames(folder: string): { readonly namespace: string; readonly link: string } {
  const id = createHash("sha256").update(folder).digest("hex").slice(0, 8);
  return { namespace: `nodeyard-qemu-${id}`, link: `nyq${id}` };
}

/**
 * The alias of the link on the host. The link's name alone would not prove that Nodeyard made it. Undefined for a folder with a
 * path that is too long for an alias: such a bridge is removed only by the process that has it open.
 */
export function bridgeMark(folder: string): string | undefined {
  const mark = `${MARK}${folder}`;
  return Buffer.byteLength(mark) <= MOST_BYTES ? mark : undefined;
}

/** The folder that a mark names; undefined for any other alias. */
export function markedFolder(mark: string): string | undefined {
  return mark.startsWith(`${MARK}/`) ? mark.slice(MARK.length) : undefined;
}

const MARK = "nodeyard-qemu ";
/** Longest alias of an interface (IFALIASZ of linux/if.h, without its final zero). */
const MOST_BYTES = 255;

/** The nftables table with the host's rules for the link. */
export function hostTable(link: string): string {
  return `inet nodeyard_${link}`;
}

/**
 * Rules on the host: packets from machines reach no address of the host, except for answers. `outbound` forwards them to any other address,
 * translated to the host's address. They are loaded in one transaction, so that there is no moment without rules.
 */
export function hostRules(link: string, subnet: Subnet, network: "restricted" | "outbound"): string {
  const table = hostTable(link);
  const answers = `    iifname "${link}" ct state established,related accept`;
  const onward =
    network === "outbound"
      ? [
          `    iifname "${link}" fib daddr type { local, broadcast, multicast } drop`,
          ...METADATA.map((where) => `    iifname "${link}" ${where} drop`),
        ]
      : [];
  return [
    `table ${table} {}`,
    `delete table ${table}`,
    `table ${table} {`,
    "  chain input {",
    "    type filter hook input priority -10; policy accept;",
    answers,
    `    iifname "${link}" drop`,
    "  }",
    "  chain forward {",
    "    type filter hook forward priority -10; policy accept;",
    answers,
    ...onward,
    `    iifname "${link}" ${network === "outbound" ? `ip saddr ${dotted(subnet.base)}/${subnet.prefix} accept` : "drop"}`,
    ...(network === "outbound" ? [`    iifname "${link}" drop`] : []),
    "  }",
    ...(network === "outbound" ? masquerade(link, subnet) : []),
    "}",
    "",
  ].join("\n");
}

/** Translates packets that leave to other hosts. Packets to the host need no translation. */
function masquerade(link: string, subnet: Subnet): readonly string[] {
  return [
    "  chain postrouting {",
    "    type nat hook postrouting priority 100; policy accept;",
    `    ip saddr ${dotted(subnet.base)}/${subnet.prefix} oifname != "${link}" masquerade`,
    "  }",
  ];
}

/**
 * Rules on the bridge: a machine may send only with its own addresses. The set is filled as machines start, and outlives
 * launchers like they do. Loading the rules again keeps the set: only the chain is flushed.
 */
export function bridgeRules(): string {
  const table = "bridge nodeyard";
  return [
    `add table ${table}`,
    `add set ${table} ports { type ifname . ether_addr . ipv4_addr; }`,
    `add chain ${table} prerouting { type filter hook prerouting priority -300; policy accept; }`,
    `flush chain ${table} prerouting`,
    // "uplink" is the host's end. Packets that are neither IPv4 nor ARP are dropped, so IPv6 between guests and host does not exist.
    `add rule ${table} prerouting iifname "uplink" accept`,
    `add rule ${table} prerouting ether type ip iifname . ether saddr . ip saddr @ports accept`,
    `add rule ${table} prerouting ether type arp iifname . ether saddr . arp saddr ip @ports accept`,
    `add rule ${table} prerouting drop`,
    "",
  ].join("\n");
}

/** The element of a port in the set. */
export function portElement({ tap, mac, address }: Port): string {
  return `element bridge nodeyard ports { "${tap}" . ${mac} . ${address} }`;
}

function dotted(address: number): string {
  return [24, 16, 8, 0].map((shift) => Math.floor(address / 2 ** shift) % 256).join(".");
}
