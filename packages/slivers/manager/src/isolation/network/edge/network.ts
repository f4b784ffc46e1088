import { writeFile } from "node:fs/promises";
import type { Clock } from "@nodeyard/runtime";
import type { SliverConfig } from "../../../core/plan.ts";
import { CommandError } from "../../../errors.ts";
import { read } from "../../cgroups/edge/group-files.ts";
import { together } from "../../edge/files.ts";
import { run } from "../../edge/run.ts";
import type { Names } from "../../lxc/names.ts";
import { frameScript, type Inbound, type Outbound, removalScript, sliverScript, TABLE } from "../rules.ts";
import {
  blackhole,
  cable6Commands,
  cableCommands,
  frameCommands,
  GONE,
  sentByIndex,
  shapeCommands,
  UPLINK_QUEUE,
  unshapeCommands,
} from "../shape.ts";
import { batch } from "./batch.ts";
import {
  deviceToWorld,
  forward,
  forwarded,
  hasIpv6,
  nameservers,
  resolverText,
  stopForwarding,
} from "./host-network.ts";

/**
 * Most connections of a sliver without a cap. The kernel's connection table is shared by the whole machine, and often has 65,536 entries.
 */
const UNCAPPED = 4_096;
/**
 * The host's address on every cable. Slivers have no other neighbour. It is link-local (RFC 3927), so it takes no address of a network
 * that the machine knows.
 */
export const GATEWAY = "169.254.1.1";

/** Of a cable with IPv6: what a sliver says about routers and addresses is not heeded. */
const SETTINGS6 = [
  ["accept_ra", "0"],
  ["autoconf", "0"],
  ["force_forwarding", "1"],
  ["disable_ipv6", "0"],
] as const;

/** For how long a look at the rules serves, milliseconds: less than a heartbeat, and looks follow each other fast while much is done. */
const LOOK_AGE = 5_000;

/** Options of the network of slivers. */
export interface NetworkOptions {
  /** bit/s. */
  readonly link: number;
  /** Default interface: that of the default route. Absent: slivers reach no other machine. */
  readonly outbound?: Omit<Outbound, "device" | "resolvers"> & { readonly device?: string | undefined };
  readonly inbound?: Inbound | undefined;
  /** First two numbers of the slivers' addresses. */
  readonly network: string;
  /** File with the names of interfaces on which forwarding was enabled for slivers. */
  readonly forwarding: string;
  readonly clock: Pick<Clock, "monotonic">;
}

/**
 * The host's side of the slivers' network: rules, queues, addresses. It starts as few programs as possible, because each start takes time.
 */
export class Network {
  readonly #options: NetworkOptions;
  /** What `prepare` was done for, by the sliver's index, until the start that it was done for. */
  readonly #prepared = new Map<number, SliverConfig>();
  /** The chains that were there at the last look, with those that were made and removed here since; monotonic milliseconds. */
  #guarded: { readonly at: number; readonly chains: Set<string> } | undefined;
  #changes = 0;

  constructor(options: NetworkOptions) {
    this.#options = options;
  }

  /** Makes rules and cable of a sliver. May be repeated, also while it runs. */
  async prepare(names: Names, config: SliverConfig, signal: AbortSignal): Promise<void> {
    await together(this.admit(names, config, signal), this.#connect(names, config, signal));
    this.#prepared.set(names.index, config);
  }

  /** Before a start: prepares what the same task has not prepared already, which costs as much time as making a root. */
  async demandPrepared(names: Names, config: SliverConfig, signal: AbortSignal): Promise<void> {
    // The same object, and not an equal one: it lives as long as the task.
    const done = this.#prepared.get(names.index) === config;
    if (!done) await this.prepare(names, config, signal);
    this.#prepared.delete(names.index);
  }

  /**
   * Installs the rules of a sliver, before its cable exists: from the first packet on only its own address may pass. The common rules are
   * written each time in the same transaction, because a reload of the host's rules may have removed those of slivers. Throws CommandError.
   */
  async admit(names: Names, config: SliverConfig, signal: AbortSignal): Promise<void> {
    const connections = config.effective.connections || UNCAPPED;
    const { inbound, forwarding } = this.#options;
    for (const device of this.#ways()) await forward({ family: "ipv4", device }, forwarding);
    const [outbound, own6] = [this.#outbound(), await this.speaks6()];
    if (outbound !== undefined && own6)
      await forward({ family: "ipv6", device: outbound.device }, forwarding);
    const [text, closed] = [await resolverText(), await forwarded(forwarding)];
    const way = outbound && { ...outbound, resolvers: nameservers(text) };
    const frame = own6 || way === undefined ? way : { ...way, ipv6: undefined };
    const own = own6 ? names : { ...names, address6: undefined };
    await nft(frameScript(frame, inbound, closed) + sliverScript({ ...own, connections }), signal);
    this.#changes++;
    this.#guarded?.chains.add(names.chain);
  }

  /** Whether slivers that start now have IPv6: it is configured, and the interface to the world has it. */
  async speaks6(): Promise<boolean> {
    const outbound = this.#outbound();
    return outbound?.ipv6 !== undefined && (await hasIpv6(outbound.device));
  }

  /** For operators: why slivers have no IPv6 although it is configured. */
  async lacks6(): Promise<readonly string[]> {
    const outbound = this.#outbound();
    if (outbound?.ipv6 === undefined || (await this.speaks6())) return [];
    return [`ipv6: ${outbound.device} has no IPv6 address, so slivers have none either`];
  }

  /** The chains to which cables are connected, as of at most LOOK_AGE ago. */
  async guarded(signal: AbortSignal): Promise<ReadonlySet<string>> {
    const now = this.#options.clock.monotonic();
    if (this.#guarded !== undefined && now - this.#guarded.at < LOOK_AGE) return this.#guarded.chains;
    const before = this.#changes;
    const map = await shown(["nft", "list", "map", "inet", TABLE, "cables"], signal);
    const chains = new Set([...map.matchAll(/: jump (s\d+)/g)].map(([, chain]) => chain!));
    // What was changed meanwhile may be missing in it.
    this.#guarded = before === this.#changes ? { at: now, chains } : undefined;
    return chains;
  }

  /**
   * Makes the cable, with both ends on the host, and the host's address, route and queues, so that it is limited before its first packet.
   * An existing cable, even in use, is kept.
   */
  async #connect(names: Names, config: SliverConfig, signal: AbortSignal): Promise<void> {
    const { device, address6 } = names;
    const ways = this.#ways();
    await batch("ip", cableCommands(names, GATEWAY), signal);
    const own6 = address6 !== undefined && (await this.speaks6());
    // A host without IPv6 has none of these, and a kernel before 6.17 not all.
    for (const [key, value] of own6 ? SETTINGS6 : ([["disable_ipv6", "1"]] as const))
      await writeFile(`/proc/sys/net/ipv6/conf/${device}/${key}`, value).catch(() => undefined);
    if (ways.length > 0) await writeFile(`/proc/sys/net/ipv4/conf/${device}/forwarding`, "1");
    if (own6) await batch("ip", cable6Commands(device, address6), signal);
    await this.shape(names, config, signal);
  }

  /** Changes the rates of a running sliver. */
  async shape(names: Names, { limits }: SliverConfig, signal: AbortSignal): Promise<void> {
    await batch("tc", [...frameCommands(this.#options.link), ...shapeCommands(names, limits)], signal);
  }

  /** Bytes sent by each sliver, by its index. */
  async sent(signal: AbortSignal): Promise<ReadonlyMap<number, number>> {
    return sentByIndex(await shown(["tc", "-s", "class", "show", "dev", UPLINK_QUEUE], signal));
  }

  /** Number of its network interface, which is not reused until the machine reboots. Undefined: there is no interface. */
  async cable({ device }: Names): Promise<number | undefined> {
    const text = await read(`/sys/class/net/${device}/ifindex`);
    return text === undefined ? undefined : Number(text);
  }

  /** Removes cable, rules and queues, as far as they exist. */
  async disconnect(names: Names, signal: AbortSignal): Promise<void> {
    this.#prepared.delete(names.index);
    this.#changes++;
    this.#guarded?.chains.delete(names.chain);
    await together(
      batch("ip", [{ text: `link del ${names.device}`, mayFail: GONE }], signal),
      batch("tc", unshapeCommands(names), signal),
      nft(removalScript(names), signal),
    );
  }

  /** Removes the common parts, on a machine without slivers. */
  async remove(signal: AbortSignal): Promise<void> {
    this.#guarded = undefined;
    await together(
      nft(`delete table inet ${TABLE}\n`, signal).catch(ignoreMissing),
      batch(
        "ip",
        [`link del ${UPLINK_QUEUE}`, `route del ${blackhole(this.#options.network)}`].map((text) => ({
          text,
          mayFail: GONE,
        })),
        signal,
      ),
      stopForwarding(this.#options.forwarding),
    );
  }

  /** The way to other machines now: the default route may have moved to another interface. */
  #outbound(): Outbound | undefined {
    const { outbound } = this.#options;
    const device = outbound && (outbound.device ?? deviceToWorld());
    return outbound && device !== undefined ? { ...outbound, device } : undefined;
  }

  /** Interfaces between which packets of slivers are forwarded. */
  #ways(): readonly string[] {
    const ways = [this.#outbound(), this.#options.inbound];
    return [...new Set(ways.flatMap((way) => (way === undefined ? [] : [way.device])))];
  }
}

/** nft applies a script in one transaction, completely or not at all. */
function nft(script: string, signal: AbortSignal): Promise<string> {
  return run(["nft", "-f", "-"], { signal, input: script });
}

/** What a program shows; nothing when the thing is not there. */
function shown(words: readonly [string, ...string[]], signal: AbortSignal): Promise<string> {
  return run(words, { signal }).catch(ignoreMissing);
}

/** The thing to be removed or shown is not there, which is no failure. */
function ignoreMissing(error: unknown): string {
  if (!(error instanceof CommandError) || !GONE.test(error.message)) throw error;
  return "";
}
