import {
  type DriverContext,
  DriverError,
  type Provider,
  provide,
  type Scanner,
  SharedValue,
} from "@nodeyard/driver";
import { messageOf } from "@nodeyard/runtime";
import type { StaticHost, StaticProviderConfig } from "./config.ts";
import { machineOf, mismatch, placedHosts } from "./hosts.ts";

type Scanned = Awaited<ReturnType<Scanner["scan"]>>;

/** Time limit for the wait in the scanner's queue, milliseconds. The scan itself has the host's own time limit. */
const QUEUE_MS = 60_000;

/** A provider of existing hosts. It creates and deletes nothing: it lists the hosts and checks whether they answer. */
export function staticProvider(
  config: StaticProviderConfig,
  { clock, scan: scanner }: Pick<DriverContext, "clock" | "scan">,
): Provider {
  const hosts = placedHosts(config);
  const items = Array.from(hosts.values(), ({ item }) => item);
  // By host, port and the settings of the scan.
  const scans = new Map<string, SharedValue<Scanned>>();

  /** Scans a host. Callers that ask at the same time share one scan; results are not kept. */
  function scan(host: StaticHost, signal: AbortSignal): Promise<Scanned> {
    const { port } = host.connection;
    const target = { host: host.name, port, keys: hasKeys(host), timeoutMs: host.timeoutMs };
    const key = JSON.stringify(target);
    const known = scans.get(key);
    if (known !== undefined) return known.get(signal);
    const shared = new SharedValue({
      clock,
      load: (own) => scanner.scan({ ...target, signal: own }),
      what: `scan of ${host.name}:${port}`,
      // No result is reused: each probe has to show the host as it is.
      freshMs: -1,
      staleMs: -1,
      loadMs: host.timeoutMs + QUEUE_MS,
    });
    scans.set(key, shared);
    return shared.get(signal);
  }

  return provide(config.name, {
    // biome-ignore lint/correctness/useYield: the contract's form; there is no step that could be taken.
    async *create({ label }) {
      throw new DriverError(
        "configuration",
        `provider ${config.name} launches nothing: label ${label.name} is served by the hosts of the file only`,
      );
    },
    async *remove() {},
    find: async () => undefined,
    // Hosts are no resources of a cloud: nothing of them can leak, and the file is their only limit.
    list: async () => [],
    removeResource: async () => {},
    quota: async () => ({}),
    need: async () => ({ instances: 1 }),
    inventory: () => items,
    async probe({ key }, signal) {
      const host = hosts.get(key)?.host;
      if (host === undefined)
        return { alive: false, why: `${key} is not in the configuration of ${config.name}` };
      // The file asks for no check of host keys, so the host is not contacted, whatever its connection type is.
      if (!host.hostKeyChecking) return { alive: true, machine: machineOf(host, host.hostKeys, undefined) };
      let scanned: Scanned;
      try {
        scanned = await scan(host, signal);
      } catch (error) {
        signal.throwIfAborted();
        // A host that does not answer is a result: the launcher takes it out of service until it does.
        return { alive: false, why: messageOf(error) };
      }
      // A host with another key may be another machine: it gets no jobs until an operator has looked.
      const why = hasKeys(host) ? mismatch(host, scanned.hostKeys) : undefined;
      if (why !== undefined) return { alive: false, why };
      return { alive: true, machine: machineOf(host, scanned.hostKeys, scanned) };
    },
    async close() {
      for (const shared of scans.values()) shared.close();
    },
  });
}

/** Connection types that use SSH. For other types only the port is checked. */
function hasKeys({ connection }: StaticHost): boolean {
  return connection.type === "ssh" || connection.type === "network_cli";
}
