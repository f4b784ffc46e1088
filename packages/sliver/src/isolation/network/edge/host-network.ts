import { readFileSync } from "node:fs";
import { readFile, rm, writeFile } from "node:fs/promises";
import { CommandError } from "../../../errors.ts";

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

/** IPv4 addresses of the name servers in a resolv.conf. */
export function nameservers(text: string): readonly string[] {
  return [...text.matchAll(/^\s*nameserver\s+(\d{1,3}(?:\.\d{1,3}){3})\s*$/gm)].map(
    ([, address]) => address!,
  );
}

/**
 * Enables forwarding on an interface, and records in the file `note` that it was disabled. Throws CommandError when there is no such
 * interface.
 */
export async function forward(device: string, note: string): Promise<void> {
  const state = await readFile(setting(device), "utf8").catch((cause: NodeJS.ErrnoException) => {
    if (cause.code !== "ENOENT") throw cause;
    throw new CommandError(
      `this machine has no interface ${device} (ip link shows which it has); correct device in isolation.outbound and isolation.inbound`,
      { cause },
    );
  });
  if (state.trim() === "1") return;
  const noted = await forwarded(note);
  await writeFile(note, `${[...new Set([...noted, device])].join("\n")}\n`);
  await writeFile(setting(device), "1");
}

/** Interfaces on which forwarding was enabled for slivers. */
export async function forwarded(note: string): Promise<readonly string[]> {
  const text = await readFile(note, "utf8").catch(() => "");
  return text.split("\n").filter((line) => line !== "");
}

/** Restores the kernel settings from before the first sliver. */
export async function stopForwarding(note: string): Promise<void> {
  for (const device of await forwarded(note)) await writeFile(setting(device), "0").catch(() => undefined);
  await rm(note, { force: true });
}

function setting(device: string): string {
  return `/proc/sys/net/ipv4/conf/${device}/forwarding`;
}
