import type { Network, Server } from "../api/index.ts";
import type { Cloud, NetworkHint } from "../clouds/index.ts";

/** The facts by which a server's addresses are classified. */
export interface Reach extends Pick<Cloud, "private" | "forceIpv4"> {
  /** Networks that the project may use, from neutron. */
  readonly networks: readonly Network[];
  /** `networks` of clouds.yaml. A hint wins over neutron. */
  readonly hints: readonly NetworkHint[];
  /** This host has a routable IPv6 address. */
  readonly ipv6: boolean;
}

/** A server's addresses as they are recorded. `interfaceIp` is the one that clients connect to; null when the server has no address. */
export interface Addresses {
  readonly interfaceIp: string | null;
  readonly publicIpv4: string | null;
  readonly privateIpv4: string | null;
  readonly publicIpv6: string | null;
}

/** Classifies the addresses of a server (docs/contract/drivers.md, "OpenStack: addresses"). `floatingIp`: one that nova may not show yet. */
export function addressesOf(
  server: Pick<Server, "addresses">,
  reach: Reach,
  floatingIp: string | null,
): Addresses {
  const all = Object.entries(server.addresses).flatMap(([network, list]) =>
    list.map((one) => ({ ...one, network, floating: one["OS-EXT-IPS:type"] === "floating" })),
  );
  const external = (name: string) => isExternal(name, reach);
  const v4 = all.filter(({ version }) => version === 4);
  const fixed = v4.filter(({ floating }) => !floating);
  // A floating IP wins over a fixed address of an external network: it was made to be reached.
  const floating = floatingIp ?? v4.find((one) => one.floating)?.addr;
  const publicIpv4 = floating ?? fixed.find(({ network }) => external(network))?.addr ?? null;
  const inner = fixed.filter(({ network }) => !external(network));
  const nat = reach.hints.find(({ natDestination }) => natDestination)?.name;
  // Among several inner networks the one to which floating IPs are translated, if clouds.yaml names it.
  const privateIpv4 = (inner.find(({ network }) => network === nat) ?? inner[0])?.addr ?? publicIpv4;
  const v6 = all.find(({ version, addr }) => version === 6 && isGlobal(addr));
  const publicIpv6 = reach.forceIpv4 ? null : (v6?.addr ?? null);
  const byDefault = reach.hints.find((hint) => hint.defaultInterface)?.name;
  const named = all.find(({ network, version }) => network === byDefault && version === 4)?.addr;
  const first = named ?? (reach.private ? privateIpv4 : null) ?? (reach.ipv6 ? publicIpv6 : null);
  // Without a public address the private one is the only choice.
  const interfaceIp = first ?? publicIpv4 ?? privateIpv4 ?? publicIpv6;
  return { interfaceIp, publicIpv4, privateIpv4, publicIpv6 };
}

/** Whether the server is not reachable from outside and a floating IP would change that. */
export function wantsFloatingIp(server: Pick<Server, "addresses">, reach: Reach): boolean {
  // Clients are in the cloud's own network.
  if (reach.private) return false;
  const { publicIpv4, privateIpv4 } = addressesOf(server, reach, null);
  return publicIpv4 === null && privateIpv4 !== null && poolOfFloatingIps(reach) !== undefined;
}

/**
 * The id of the external network of floating IPs: the one that clouds.yaml marks as their source, otherwise as external, otherwise the
 * first one; undefined when there is none. Then no server gets a floating IP.
 */
export function poolOfFloatingIps(reach: Reach): string | undefined {
  const external = reach.networks.filter((network) => network["router:external"]);
  const { hints } = reach;
  const hinted = (hints.find(({ natSource }) => natSource) ?? hints.find((one) => one.external))?.name;
  return (external.find(({ name, id }) => name === hinted || id === hinted) ?? external[0])?.id;
}

/** The id of the network whose ports get floating IPs, where clouds.yaml names one (openstacksdk manual, "Network config"). */
export function natDestinationOf({ networks, hints }: Pick<Reach, "networks" | "hints">): string | undefined {
  const hint = hints.find(({ natDestination }) => natDestination);
  return hint && networks.find(({ name, id }) => name === hint.name || id === hint.name)?.id;
}

/** Names or ids of the networks of a server: those of its label, otherwise the default one of clouds.yaml, otherwise none. */
export function networksFor(own: readonly string[], hints: readonly NetworkHint[]): readonly string[] {
  const byDefault = hints.find(({ defaultInterface }) => defaultInterface);
  return own.length > 0 || byDefault === undefined ? own : [byDefault.name];
}

/**
 * Whether a network is reached from outside: as clouds.yaml says, otherwise neutron. Unknown networks count as internal. nova
 * names the networks of a server, while hints may have names or ids.
 */
function isExternal(name: string, { networks, hints }: Reach): boolean {
  const network = networks.find((one) => one.name === name);
  const hint = hints.find((one) => one.name === name || one.name === network?.id);
  return hint?.external ?? network?.["router:external"] ?? false;
}

/** Neither link-local nor unique local (RFC 4291 2.5.6, RFC 4193). */
function isGlobal(addr: string): boolean {
  return !/^(fe[89ab]|f[cd])/i.test(addr);
}
