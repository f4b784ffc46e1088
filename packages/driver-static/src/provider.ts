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

/** For a wait in the scanner's queue, milliseconds: a scan itself ends by the host's own time-out. */
const QUEUE_MS = 60_000;

/** Hosts that exist. It makes and unmakes nothing; it says which there should be, and whether they answer. */
export function staticProvider(
  config: StaticProviderConfig,
  { clock, scan: scanner }: Pick<DriverContext, "clock" | "scan">,
): Provider {
  const hosts = placedHosts(config);
  const items = Array.from(hosts.values(), ({ item }) => item);
  const scans = new Map<string, SharedValue<Scanned>>();

  /** One scan at a time per host and port, shared by all who ask meanwhile; never kept for later. */
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
    list: async () => [],
    removeResource: async () => {},
    quota: async () => ({}),
    need: async () => ({ instances: 1 }),
    inventory: () => items,
    async probe({ key }, signal) {
      const host = hosts.get(key)?.host;
      if (host === undefined)
        return { alive: false, why: `${key} is not in the configuration of ${config.name}` };
      // Nobody asked for proof, so the host is left alone, whatever its connection type.
      if (!host.hostKeyChecking) return { alive: true, machine: machineOf(host, host.hostKeys, undefined) };
      let scanned: Scanned;
      try {
        scanned = await scan(host, signal);
      } catch (error) {
        signal.throwIfAborted();
        return { alive: false, why: messageOf(error) };
      }
      const why = hasKeys(host) ? mismatch(host, scanned.hostKeys) : undefined;
      if (why !== undefined) return { alive: false, why };
      return { alive: true, machine: machineOf(host, scanned.hostKeys, scanned) };
    },
    async close() {
      for (const shared of scans.values()) shared.close();
    },
  });
}

/** Connection types that speak SSH; any other only has a port. */
function hasKeys({ connection }: StaticHost): boolean {
  return connection.type === "ssh" || connection.type === "network_cli";
}
