import { readFileSync } from "node:fs";
import { readFile, rm, writeFile } from "node:fs/promises";
import { isIP } from "node:net";
import { ignoring } from "@nodeyard/runtime";
import { CommandError } from "../../../errors.ts";
import type { Forwarding } from "../rules.ts";

/** Speed in bit/s for interfaces whose speed the kernel does not know, which is the case for most virtual ones. */
const UNKNOWN_SPEED = 10_000_000_000;

/** The host's resolv.conf, then the files of the local resolvers that it may name (systemd-resolved, NetworkManager). */
const RESOLVERS = [
  "/etc/resolv.conf",
  "/run/systemd/resolve/resolv.conf",
  "/run/NetworkManager/no-stub-resolv.conf",
];

/** The interface of the default route in /proc/net/route; of several the one that the kernel prefers. */
export function defaultDevice(routes: string): string | undefined {
  const UP = 1;
  return routes
    .split("\n")
    .slice(1)
    .map((line) => line.split("\t"))
    .filter(([, to, , flags = "0"]) => to === "00000000" && (Number.parseInt(flags, 16) & UP) !== 0)
    .sort((a, b) => Number(a[6]) - Number(b[6]))[0]?.[0];
}

/** The interface of the default route now. A machine that has just booted may have none yet. */
export function deviceToWorld(): string | undefined {
  return defaultDevice(readFileSync("/proc/net/route", "utf8"));
}

/** bit/s that the interface can send. */
export function linkSpeed(device: string | undefined): number {
  try {
    const megabits = Number(readFileSync(`/sys/class/net/${device}/speed`, "utf8"));
    return megabits > 0 ? megabits * 1_000_000 : UNKNOWN_SPEED;
  } catch {
    return UNKNOWN_SPEED;
  }
}

/**
 * The /etc/resolv.conf for slivers: the first of the host's files that names a resolver outside of the host, without resolvers on the
 * host's loopback, which slivers cannot reach. Empty when there is none.
 */
export function resolvers(texts: readonly string[]): string {
  const reachable = texts.map((text) =>
    text.split("\n").filter((line) => !/^\s*nameserver\s+(?:127\.|0\.0\.0\.0|::1?\s*$)/.test(line)),
  );
  const lines = reachable.find((list) => list.some((line) => /^\s*nameserver\s/.test(line)));
  return lines?.join("\n") ?? "";
}

/** The resolv.conf for slivers of this machine. */
export async function resolverText(): Promise<string> {
  return resolvers(await Promise.all(RESOLVERS.map((file) => readFile(file, "utf8").catch(() => ""))));
}

/** Addresses of the name servers in a resolv.conf. Those of one interface (`fe80::1%eth0`) are none that slivers reach. */
export function nameservers(text: string): readonly string[] {
  return [...text.matchAll(/^\s*nameserver\s+(\S+)\s*$/gm)].map(([, address]) => address!).filter(isIP);
}

/** Whether the interface has an IPv6 address that others reach, in /proc/net/if_inet6 (scope 0). A host without IPv6 has no such file. */
export async function hasIpv6(device: string): Promise<boolean> {
  const lines = (await readFile("/proc/net/if_inet6", "utf8").catch(() => "")).split("\n");
  return lines.some((line) => {
    const [, , , scope, , name] = line.trim().split(/\s+/);
    return name === device && scope === "00";
  });
}

/**
 * Enables forwarding on an interface, and records in the file `note` that it was disabled. Throws CommandError when there is no such
 * interface, or the kernel cannot forward IPv6 on it alone.
 */
export async function forward(way: Forwarding, note: string): Promise<void> {
  const { family, device } = way;
  // The owner of the machine has made it a router of IPv6 already.
  if (family === "ipv6" && (await stateOf("/proc/sys/net/ipv6/conf/all/forwarding")) === "1") return;
  const state = await stateOf(setting(way));
  if (state === undefined)
    throw new CommandError(
      family === "ipv4"
        ? `this machine has no interface ${device} (ip link shows which it has); correct device in isolation.outbound and isolation.inbound`
        : `this kernel (before 6.17) forwards IPv6 on all interfaces or none, so slivers do not turn it on; set net.ipv6.conf.all.forwarding to 1 (and accept_ra of ${device} to 2), or remove ipv6 from isolation.outbound`,
    );
  if (state === "1") return;
  const noted = await forwarded(note);
  const lines = [...noted, way].map((one) => (one.family === "ipv4" ? one.device : `${IPV6}${one.device}`));
  await writeFile(note, `${[...new Set(lines)].join("\n")}\n`);
  await writeFile(setting(way), "1");
}

/** Interfaces on which forwarding was enabled for slivers. */
export async function forwarded(note: string): Promise<readonly Forwarding[]> {
  const text = await readFile(note, "utf8").catch(() => "");
  const lines = text.split("\n").filter((line) => line !== "");
  return lines.map((line) =>
    line.startsWith(IPV6)
      ? { family: "ipv6", device: line.slice(IPV6.length) }
      : { family: "ipv4", device: line },
  );
}

/** Restores the kernel settings from before the first sliver. */
export async function stopForwarding(note: string): Promise<void> {
  for (const way of await forwarded(note)) await writeFile(setting(way), "0").catch(() => undefined);
  await rm(note, { force: true });
}

/** Before the name of an interface in the note; no name contains a colon. */
const IPV6 = "ipv6:";

/** `force_forwarding` is of one interface. IPv6's `forwarding` of one makes it a router for its neighbours and forwards nothing. */
function setting({ family, device }: Forwarding): string {
  return `/proc/sys/net/${family}/conf/${device}/${family === "ipv4" ? "forwarding" : "force_forwarding"}`;
}

/** The text of a setting of the kernel; undefined when the kernel or the machine has no such thing. */
async function stateOf(file: string): Promise<string | undefined> {
  return (await ignoring("ENOENT", readFile(file, "utf8")))?.trim();
}
