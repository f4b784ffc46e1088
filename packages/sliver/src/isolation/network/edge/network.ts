import { readFile, writeFile } from "node:fs/promises";
import type { SliverConfig } from "../../../core/plan.ts";
import { CommandError } from "../../../errors.ts";
import { together } from "../../edge/files.ts";
import { run } from "../../edge/run.ts";
import type { Names } from "../../lxc/names.ts";
import { frameScript, type Inbound, type Outbound, removalScript, sliverScript, TABLE } from "../rules.ts";
import {
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
  nameservers,
  resolverText,
  stopForwarding,
} from "./host-network.ts";

/** Connections of a sliver without a cap: the table of connections is the whole machine's, and often has 65,536 places. */
const UNCAPPED = 4_096;
/** The host's address on every cable; slivers know no other neighbour. */
export const GATEWAY = "169.254.1.1";

/** What the network of slivers is made of. */
export interface NetworkOptions {
  /** bit/s. */
  readonly link: number;
  /** Without `device` that of the default route. Absent: slivers reach nobody. */
  readonly outbound?: Omit<Outbound, "device"> & { readonly device?: string | undefined };
  readonly inbound?: Inbound | undefined;
  /** File that names the interfaces that forward because slivers need it. */
  readonly forwarding: string;
}

/** The host's side of the slivers' network: rules, queues, addresses. As few processes as can be: each costs a start. */
export class Network {
  readonly #options: NetworkOptions;

  constructor(options: NetworkOptions) {
    this.#options = options;
  }

  /**
   * Before its cable is there: from then on its address, and only its, passes. The frame that holds for all is written
   * each time with it, as one transaction: the host's rules may have been reloaded, which removes those of slivers.
   * Throws CommandError.
   */
  async admit(names: Names, config: SliverConfig, signal: AbortSignal): Promise<void> {
    const connections = config.effective.connections || UNCAPPED;
    for (const device of this.#ways()) await forward(device, this.#options.forwarding);
    const { inbound, forwarding } = this.#options;
    const [outbound, text, closed] = [this.#outbound(), await resolverText(), await forwarded(forwarding)];
    const way = outbound && { ...outbound, resolvers: nameservers(text) };
    await nft(frameScript(way, inbound, closed) + sliverScript({ ...names, connections }), signal);
  }

  /** Chains that a cable leads into now. */
  async guarded(signal: AbortSignal): Promise<ReadonlySet<string>> {
    const map = await run(["nft", "list", "map", "inet", TABLE, "cables"], { signal }).catch((error) => {
      ignoreMissing(error);
      return "";
    });
    return new Set([...map.matchAll(/: jump (s\d+)/g)].map(([, chain]) => chain!));
  }

  /**
   * Makes the cable, both ends here, with the host's address, route and queues: it is limited before its first packet.
   * A cable that is there, in use even, keeps its ends.
   */
  async connect(names: Names, config: SliverConfig, signal: AbortSignal): Promise<void> {
    const { device } = names;
    const ways = this.#ways();
    await batch("ip", cableCommands(names, GATEWAY), signal);
    await writeFile(`/proc/sys/net/ipv6/conf/${device}/disable_ipv6`, "1").catch(() => undefined);
    if (ways.length > 0) await writeFile(`/proc/sys/net/ipv4/conf/${device}/forwarding`, "1");
    await this.shape(names, config, signal);
  }

  /** New rates, while it runs. */
  async shape(names: Names, { limits }: SliverConfig, signal: AbortSignal): Promise<void> {
    await batch("tc", [...frameCommands(this.#options.link), ...shapeCommands(names, limits)], signal);
  }

  /** Bytes that each sliver has sent, by its index. */
  async sent(signal: AbortSignal): Promise<ReadonlyMap<number, number>> {
    const show = ["tc", "-s", "class", "show", "dev", UPLINK_QUEUE] as const;
    const shown = await run(show, { signal }).catch((error) => {
      ignoreMissing(error);
      return "";
    });
    return sentByIndex(shown);
  }

  /** The number of its network interface, which no other one gets until the machine reboots. Undefined: there is none. */
  async cable({ device }: Names): Promise<number | undefined> {
    const text = await readFile(`/sys/class/net/${device}/ifindex`, "utf8").catch(() => undefined);
    return text === undefined ? undefined : Number(text);
  }

  /** Nothing of it is left when it resolves, whatever was there. */
  async disconnect(names: Names, signal: AbortSignal): Promise<void> {
    await together(
      batch("ip", [{ text: `link del ${names.device}`, mayFail: GONE }], signal),
      batch("tc", unshapeCommands(names), signal),
      nft(removalScript(names), signal),
    );
  }

  /** Of a machine without slivers. */
  async remove(signal: AbortSignal): Promise<void> {
    await together(
      nft(`delete table inet ${TABLE}\n`, signal).catch(ignoreMissing),
      batch("ip", [{ text: `link del ${UPLINK_QUEUE}`, mayFail: GONE }], signal),
      stopForwarding(this.#options.forwarding),
    );
  }

  #outbound(): Outbound | undefined {
    const { outbound } = this.#options;
    const device = outbound && (outbound.device ?? deviceToWorld());
    return outbound && device !== undefined ? { ...outbound, device } : undefined;
  }

  #ways(): readonly string[] {
    const ways = [this.#outbound(), this.#options.inbound];
    return [...new Set(ways.flatMap((way) => (way === undefined ? [] : [way.device])))];
  }
}

function nft(script: string, signal: AbortSignal): Promise<string> {
  return run(["nft", "-f", "-"], { signal, input: script });
}

function ignoreMissing(error: unknown): void {
  if (!(error instanceof CommandError) || !GONE.test(error.message)) throw error;
}
