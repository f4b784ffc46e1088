import type {
  CreateOrder,
  Driver,
  DriverContext,
  Machine,
  Price,
  Provider,
  ProviderConfig,
  SlotRules,
  Step,
  StepContext,
  Tag,
} from "@nodeyard/driver";
import { defined, sleep } from "@nodeyard/runtime";
import type { Experience, Place } from "./experience.ts";

/** For a step beyond the time it is to take, milliseconds. */
const GRACE_MS = 60_000;

/**
 * A driver whose machines exist only in memory, with recorded durations. `real`: the installed driver. A driver that launches nothing
 * (static) is used as it is, with hosts that answer. How backing nodes are cut into slots is the real driver's. Launches never
 * fail, so requests wait for nothing but limits and launches.
 */
export function playedDriver(name: string, real: Driver | undefined, experience: Experience): Driver {
  if (real?.capabilities.launches === false) return real;
  const slots = real?.slots;
  return {
    name,
    contract: 1,
    capabilities: {
      launches: true,
      inventory: false,
      probes: false,
      // Nobody else has machines in this cloud, so nothing is listed, swept or counted as foreign.
      tags: false,
    },
    ...defined({ slots }),
    // Only `open` is called of it.
    config: real?.config as Driver["config"],
    open: async (config, context) => ({
      ...playedProvider(config, context, experience, slots),
      offers: {
        // Prices of the file are by type, and offerings of a label are told apart by it.
        ...(real?.config.typeOf && { types: { of: real.config.typeOf } }),
        prices: { of: async (type) => pastPrice(config, type, experience, real?.config.typeOf) },
      },
    }),
  };
}

/** What an hour of a node of that type cost. Records name labels; of one with several offerings they do not say which was bought. */
function pastPrice(
  { name, pools }: ProviderConfig,
  type: string,
  experience: Experience,
  typeOf: Driver["config"]["typeOf"] = (label) => label.name,
): Price | null {
  for (const label of pools.flatMap(({ labels }) => [...labels.values()])) {
    if (label.offerings !== undefined || typeOf(label) !== type) continue;
    const price = experience.priceOf(name, label.name);
    if (price !== null) return price;
  }
  return null;
}

/** The machines of one provider, or its slots. */
function playedProvider(
  config: ProviderConfig,
  { clock }: DriverContext,
  experience: Experience,
  slots: SlotRules | undefined,
): Provider {
  // By node id. Nodes without an entry were never begun here, so there is nothing to delete.
  const made = new Map<string, Place>();
  return {
    async *create(
      { tag, pool, label, slot }: CreateOrder,
      { signal }: StepContext,
    ): AsyncGenerator<Step, Machine> {
      const place = { provider: config.name, pool: pool.name, label: label.name };
      made.set(tag.nodeId, place);
      const ms = experience.launchMs(place);
      yield { step: "launch", deadlineMs: ms + GRACE_MS };
      await sleep(clock, ms, signal);
      if (slot !== undefined) return { ...slot.machine, hostKeys: [] };
      return { externalId: tag.nodeId, interfaceIp: "192.0.2.1", hostKeys: [] };
    },
    async *remove({ nodeId }: Tag, { signal }: StepContext): AsyncGenerator<Step, void> {
      const place = made.get(nodeId);
      if (place === undefined) return;
      const ms = experience.deleteMs(place);
      yield { step: "delete", deadlineMs: ms + GRACE_MS };
      await sleep(clock, ms, signal);
      made.delete(nodeId);
    },
    find: async () => undefined,
    list: async () => [],
    removeResource: async () => {},
    // The recorded quota is taken as the cloud's limit; nobody else uses it.
    quota: async () => experience.quotaOf(config.name),
    async need(label) {
      if (slots !== undefined) return slots.need(label);
      const known = experience.needOf(config.name, label.name);
      if (known === undefined)
        experience.assumed.add(
          `${config.name}, ${label.name}: no node was recorded: it takes one server, and no cores or RAM`,
        );
      return known ?? { instances: 1 };
    },
    inventory: () => [],
    probe: async () => ({ alive: true, machine: { externalId: "", interfaceIp: null } }),
    close: async () => {},
  };
}
