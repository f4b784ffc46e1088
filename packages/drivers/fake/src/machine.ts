import type { CreateOrder, Machine } from "@nodeyard/driver";
import { seededRandom } from "@nodeyard/runtime";
import type { FakeServer, Status } from "./cloud/servers.ts";
import type { FakeProviderOwn } from "./config.ts";

/** Names of networks that change the addresses of machines, as in Nodepool's fake cloud. */
const IPV6_NETWORK = "fake-ipv6-network-name";
const NO_PUBLIC_NETWORK = "no-auto-ip-network-name";

/**
 * The description of a machine that is up. Addresses come from ranges that no network routes (RFC 2544, 3849), and the host key
 * is made up, so that no client ever connects to a real host by mistake; unless `loopback` is set: then this machine answers.
 */
export function describeMachine(
  server: FakeServer,
  order: CreateOrder,
  { cloud, loopback }: Pick<FakeProviderOwn, "cloud" | "loopback">,
): Machine {
  // All of it follows from the id, so a machine is the same at each look and after a restart.
  const chance = seededRandom(hash(server.id));
  const octet = () => Math.floor(chance.float() * 256);
  const [a, b, c] = [octet(), octet(), octet()];
  const network = server.networks[0];
  const own = loopback ? `127.${a}.${b}.${c}` : `198.${18 + (a & 1)}.${b}.${c}`;
  const publicIpv4 = network === NO_PUBLIC_NETWORK ? null : own;
  const privateIpv4 = `10.${a}.${b}.${c}`;
  const publicIpv6 =
    network === IPV6_NETWORK ? `2001:db8::${a.toString(16)}:${b.toString(16)}${c.toString(16)}` : null;
  const { connection, hostKeyChecking } = order.label;
  const ssh = connection.type === "ssh" || connection.type === "network_cli";
  return {
    externalId: server.id,
    interfaceIp: publicIpv6 ?? publicIpv4 ?? privateIpv4,
    publicIpv4,
    privateIpv4,
    publicIpv6,
    hostname: server.name,
    cloud,
    region: "fake-region",
    az: server.az,
    hostId: `fake-host-${a}`,
    resources: server.resources,
    ...(!loopback && { hostKeys: ssh && hostKeyChecking ? [hostKey(octet)] : [] }),
  };
}

/** Console output in the style of real machines: with colours, and incomplete while the machine boots. `fate`: how its boot ends. */
export function consoleOf({ name, id, fate }: FakeServer, status: Status): string {
  const began = [`\u001b[0;32mBooting\u001b[0m ${name}`, `machine-id ${id}`];
  if (status === "ACTIVE") return [...began, `${name} login: `].join("\r\n");
  return [...began, fate === "error" ? "Kernel panic - not syncing" : "Waiting for the network"].join("\r\n");
}

/** A well-formed Ed25519 key without a private key: 4 bytes of length, the type, 4 bytes of length, 32 bytes. */
function hostKey(octet: () => number): string {
  const type = Buffer.from("ssh-ed25519");
  const key = Buffer.from(Array.from({ length: 32 }, octet));
  const blob = Buffer.concat([Buffer.from([0, 0, 0, 11]), type, Buffer.from([0, 0, 0, 32]), key]);
  return `ssh-ed25519 ${blob.toString("base64")}`;
}

/** FNV-1a hash, for a seed. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (const unit of text) value = Math.imul(value ^ unit.codePointAt(0)!, 0x01000193) >>> 0;
  return value;
}
