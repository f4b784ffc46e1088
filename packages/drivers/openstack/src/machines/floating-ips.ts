import { type Clock, DriverError, SharedValue, sameNode, type Tag } from "@nodeyard/driver";
import type { Api, FloatingIp, Port } from "../api/index.ts";
import { markOf, tagOfMark } from "../tags.ts";

/** Up to this age (milliseconds) a list serves callers that changed nothing themselves. */
const FRESH_MS = 1_000;

/**
 * Floating IPs of nodes. The mark is set in the call that creates one, and used to find it later. All methods may be repeated
 * after a lost answer or a crash. Concurrent launches share one list of floating IPs and one of ports, each at most FRESH_MS old.
 */
export class FloatingIps {
  readonly #api: Pick<Api, "floatingIps" | "ports">;
  readonly #list: SharedValue<readonly FloatingIp[]>;
  readonly #ports: SharedValue<readonly Port[]>;

  constructor(clock: Clock, api: Pick<Api, "floatingIps" | "ports">) {
    this.#api = api;
    const shared = <T>(what: string, load: (signal: AbortSignal) => Promise<readonly T[]>) =>
      new SharedValue({ clock, what, load, freshMs: FRESH_MS, staleMs: FRESH_MS });
    this.#list = shared("list of floating IPs", (signal) => api.floatingIps.own(signal));
    this.#ports = shared("list of ports", (signal) => api.ports.own(signal));
  }

  /**
   * The address of the tag's floating IP on the server; creates or attaches one if needed. `pool`: id of the external network that it is
   * taken from. `target`: id of the network whose port gets it, where that is known.
   */
  async ensure(
    tag: Tag,
    server: string,
    { pool, target }: { readonly pool: string; readonly target?: string | undefined },
    signal: AbortSignal,
  ): Promise<string> {
    const [existing] = await this.of(tag, signal);
    if (existing?.port_id) return existing.floating_ip_address;
    // It lost its port, so it was never delivered. Replacing it is cheaper than finding out why.
    if (existing !== undefined) await this.#api.floatingIps.delete(existing.id, signal);
    const port = await this.#portOf(server, target, signal);
    const order = { floating_network_id: pool, ...port, description: markOf(tag) };
    try {
      return (await this.#api.floatingIps.create(order, signal)).floating_ip_address;
    } finally {
      // After a lost answer as well: an older list would hide what was made from the next call, which would make a second one.
      this.#list.invalidate();
    }
  }

  /** The floating IPs with the tag's mark, in the shared list: one that another process made within FRESH_MS may be missing. */
  async of(tag: Tag, signal: AbortSignal): Promise<readonly FloatingIp[]> {
    return (await this.#list.get(signal)).filter((one) => sameNode(tagOfMark(one.description), tag));
  }

  /** Deletes all floating IPs with the tag's mark. One that is gone is no error. */
  async removeOf(tag: Tag, signal: AbortSignal): Promise<void> {
    for (const { id } of await this.of(tag, signal)) {
      await this.#api.floatingIps.delete(id, signal);
      this.#list.invalidate();
    }
  }

  close(): void {
    this.#list.close();
    this.#ports.close();
  }

  /** The port for a floating IP: the server's first with an IPv4 address, in `target` if it has one there; "transient" when there is none. */
  async #portOf(server: string, target: string | undefined, signal: AbortSignal) {
    let ports = (await this.#ports.get(signal)).filter((port) => port.device_id === server);
    // The shared list may be older than the server, so ask for its ports directly.
    if (ports.length === 0)
      ports = [...(await this.#api.ports.list(signal, { query: { device_id: server } }))];
    const inTarget = ports.filter((port) => port.network_id === target);
    for (const { id, fixed_ips } of [...inTarget, ...ports]) {
      const address = fixed_ips.find(({ ip_address }) => ip_address.includes("."))?.ip_address;
      if (address !== undefined) return { port_id: id, fixed_ip_address: address };
    }
    throw new DriverError("transient", `server ${server} has no port with an IPv4 address for a floating IP`);
  }
}
