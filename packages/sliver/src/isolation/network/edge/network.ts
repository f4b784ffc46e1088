import { readFile, writeFile } from "node:fs/promises";
import type { SliverConfig } from "../../../core/index.ts";
import { run } from "../../edge/run.ts";
import { CommandError } from "../../errors.ts";
import type { Names } from "../../lxc/names.ts";
import { exists } from "../../storage/edge/pool.ts";
import { frameScript, type Outbound, removalScripts, sliverScript, TABLE } from "../rules.ts";
import { FRAME_QUEUE, frameCommands, shapeCommands, UPLINK_QUEUE, unshapeCommands } from "../shape.ts";

/** The host's address on every cable; slivers know no other neighbour. */
export const GATEWAY = "169.254.1.1";

/** The host's side of the slivers' network: rules, queues, addresses. */
export class Network {
  readonly #link: number;
  readonly #outbound: Outbound | undefined;

  /** `link` in bit/s. */
  constructor(link: number, outbound: Outbound | undefined) {
    this.#link = link;
    this.#outbound = outbound;
  }

  /** What holds before the first cable is there. Safe to repeat while slivers run. */
  async prepare(signal: AbortSignal): Promise<void> {
    await nft(frameScript(this.#outbound), signal);
    // Cables are to be limited from their first packet, so the common queue is there first.
    if (!(await exists(`/sys/class/net/${UPLINK_QUEUE}`)))
      await run(["ip", "link", "add", UPLINK_QUEUE, "type", "ifb"], { signal }).catch(ignoreExisting);
    await run(["ip", "link", "set", UPLINK_QUEUE, "up"], { signal });
    await tc([FRAME_QUEUE], signal).catch(ignoreExisting);
    await tc(frameCommands(this.#link), signal);
    if (this.#outbound !== undefined) await forwarding(this.#outbound.device);
  }

  /** Before its cable comes up: from then on its address, and only its, passes. */
  async admit(names: Names, config: SliverConfig, signal: AbortSignal): Promise<void> {
    await nft(sliverScript({ ...names, connections: config.effective.connections }), signal);
  }

  /** Chains that a cable leads into now. */
  async guarded(signal: AbortSignal): Promise<ReadonlySet<string>> {
    const map = await run(["nft", "list", "map", "inet", TABLE, "cables"], { signal }).catch((error) => {
      ignoreMissing(error);
      return "";
    });
    return new Set([...map.matchAll(/: jump (s\d+)/g)].map(([, chain]) => chain!));
  }

  /** Gives the host's end of the cable an address, a route and queues. */
  async connect(names: Names, config: SliverConfig, signal: AbortSignal): Promise<void> {
    const { device, address } = names;
    await writeFile(`/proc/sys/net/ipv6/conf/${device}/disable_ipv6`, "1").catch(() => undefined);
    if (this.#outbound !== undefined) await writeFile(`/proc/sys/net/ipv4/conf/${device}/forwarding`, "1");
    const lines = [
      `address replace ${GATEWAY}/32 dev ${device}`,
      `route replace ${address}/32 dev ${device}`,
    ];
    await run(["ip", "-batch", "-"], { signal, input: `${lines.join("\n")}\n` });
    await this.shape(names, config, signal);
  }

  /** New rates and a new count of connections, while it runs. */
  async shape(names: Names, { limits }: SliverConfig, signal: AbortSignal): Promise<void> {
    await tc(unshapeCommands(names).slice(0, 1), signal).catch(ignoreMissing);
    await tc(shapeCommands(names, limits), signal);
  }

  /** Nothing of it is left when it resolves, whatever was there. */
  async disconnect(names: Names, signal: AbortSignal): Promise<void> {
    await run(["ip", "link", "del", names.device], { signal }).catch(ignoreMissing);
    for (const command of unshapeCommands(names)) await tc([command], signal).catch(ignoreMissing);
    for (const script of removalScripts(names)) await nft(script, signal).catch(ignoreMissing);
  }

  /** Of a machine without slivers. */
  async remove(signal: AbortSignal): Promise<void> {
    await nft(`delete table inet ${TABLE}\n`, signal).catch(ignoreMissing);
    await run(["ip", "link", "del", UPLINK_QUEUE], { signal }).catch(ignoreMissing);
  }
}

function nft(script: string, signal: AbortSignal): Promise<string> {
  return run(["nft", "-f", "-"], { signal, input: script });
}

function tc(commands: readonly string[], signal: AbortSignal): Promise<string> {
  return run(["tc", "-batch", "-"], { signal, input: `${commands.join("\n")}\n` });
}

/** Answers come in through it: what it does with other people's packets is up to the operator, so it is asked for. */
async function forwarding(device: string): Promise<void> {
  const file = `/proc/sys/net/ipv4/conf/${device}/forwarding`;
  if ((await readFile(file, "utf8")).trim() === "1") return;
  throw new CommandError(
    `slivers reach the world through ${device} only when it forwards: sysctl -w net.ipv4.conf.${device}.forwarding=1`,
  );
}

function ignoreExisting(error: unknown): void {
  if (!(error instanceof CommandError) || !/File exists|Exclusivity flag on/.test(error.message)) throw error;
}

const MISSING =
  /No such file|Cannot find|does not exist|not found|No such device|Cannot find device|Invalid handle|Invalid argument/i;

function ignoreMissing(error: unknown): void {
  if (!(error instanceof CommandError) || !MISSING.test(error.message)) throw error;
}
