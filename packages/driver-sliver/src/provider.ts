import {
  type Calls,
  type Clock,
  type CreateOrder,
  type DriverContext,
  type ExternalId,
  type InventoryItem,
  idText,
  type LabelConfig,
  type Machine,
  type Offers,
  type ProbeResult,
  type Provider,
  type Resource,
  type Resources,
  type Step,
  type StepContext,
  type Tag,
  tagOf,
} from "@nodeyard/driver";
import { needOf, promised } from "./amounts.ts";
import type { SliverLabelOwn, SliverProviderConfig } from "./config.ts";
import { FREE } from "./lending/index.ts";
import { machineOf } from "./machines.ts";
import { externalId, placeOf, sliverName } from "./names.ts";
import { reconcileUses } from "./reconcile.ts";
import { complete, type SliverHosts } from "./sliver-hosts.ts";
import { createSteps, gone, handOver, removeSteps, unlist } from "./steps.ts";

/** The slivers of some machines. The provider keeps no state: all state is in the machines' documents. */
export class SliverProvider implements Provider {
  readonly offers: Offers;
  readonly #hosts: SliverHosts;
  readonly #config: SliverProviderConfig;
  readonly #calls: Calls;
  readonly #clock: Clock;

  /** `lends`: slivers of its labels lend, so lent amounts must be returned before a node is delivered. */
  constructor(
    hosts: SliverHosts,
    config: SliverProviderConfig,
    calls: Calls,
    { clock, installation }: Pick<DriverContext, "clock" | "installation">,
    lends: boolean,
  ) {
    this.#hosts = hosts;
    this.#config = config;
    this.#calls = calls;
    this.#clock = clock;
    this.offers = {
      types: { of: typeOf },
      slivers: {
        machines: (signal) =>
          calls.run("machines", signal, (own) =>
            Promise.all(hosts.all.map((host) => machineOf(host, installation, clock, own))),
          ),
      },
      ...(lends && {
        handover: {
          ready: (tag, context) =>
            calls.run("handover", context.signal, (own) => handOver(hosts, tag, { ...context, signal: own })),
          reconcile: (uses, signal) =>
            calls.run("reconcile", signal, (own) => reconcileUses(hosts, uses, own)),
        },
      }),
    };
  }

  create(order: CreateOrder, context: StepContext): AsyncGenerator<Step, Machine, void> {
    const now = () => this.#clock.now();
    return this.#calls.steps("create", context, (own) =>
      createSteps(this.#hosts, this.#config, order, own, now),
    );
  }

  remove(tag: Tag, context: StepContext): AsyncGenerator<Step, void, void> {
    return this.#calls.steps("remove", context, (own) => removeSteps(this.#hosts, tag, own));
  }

  find(tag: Tag, signal: AbortSignal): Promise<ExternalId | undefined> {
    return this.#calls.run("find", signal, async (own) => {
      const place = await this.#hosts.find(sliverName(tag), own);
      return place === undefined ? undefined : externalId(place);
    });
  }

  list(signal: AbortSignal): Promise<readonly Resource[]> {
    return this.#calls.run("list", signal, async (own) => {
      const reports = await this.#hosts.reports(own);
      return reports.flatMap(({ host, report }) =>
        complete(report)
          .slivers.filter(({ name }) => name !== FREE)
          .map((one) => ({
            type: "instance",
            id: externalId({ machine: host.name, name: one.name, generation: one.generation }),
            tag: tagOf(one.tags),
            resources: promised(one),
          })),
      );
    });
  }

  removeResource({ id, tag }: Resource, signal: AbortSignal): Promise<void> {
    return this.#calls.run("removeResource", signal, async (own) => {
      const place = placeOf(id);
      if (place === undefined || tag === null || place.name !== sliverName(tag))
        throw new Error(`${idText(id)} is not a sliver of this provider's`);
      const host = this.#hosts.get(place.machine);
      await unlist(host, tag, own);
      await host.until((report) => gone(report, place.name), own);
    });
  }

  quota(signal: AbortSignal): Promise<Resources> {
    return this.#calls.run("quota", signal, (own) => this.#hosts.capacity(own));
  }

  need(label: LabelConfig, signal: AbortSignal): Promise<Resources> {
    return this.#calls.run("need", signal, async (own) => {
      const need = needOf(label);
      await this.#hosts.judge(need, own);
      return need;
    });
  }

  inventory(): readonly InventoryItem[] {
    return [];
  }

  async probe(): Promise<ProbeResult> {
    return { alive: false, why: "the sliver driver has no inventory" };
  }

  async close(): Promise<void> {
    this.#calls.close();
  }
}

/** Slivers with the same image and rspec start or fail alike, whatever their labels are called. */
function typeOf({ own }: LabelConfig): string {
  const { rspec, image, devices, caches } = own as SliverLabelOwn;
  const amounts = Object.entries(rspec).sort(([a], [b]) => (a < b ? -1 : 1));
  return [
    image ?? "default",
    ...amounts.map(([name, amount]) => `${name}=${amount}`),
    ...devices,
    ...caches,
  ].join(" ");
}
