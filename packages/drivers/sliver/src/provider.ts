import { type DriverContext, idText, type LabelConfig, type ProviderMethods, tagOf } from "@nodeyard/driver";
import { guaranteesOf, needOf } from "./amounts.ts";
import type { SliverProviderConfig } from "./config.ts";
import { FREE } from "./lending/index.ts";
import { externalId, placeOf, sliverName } from "./names.ts";
import { reconcileUses } from "./reconcile.ts";
import type { SliverSettings } from "./rspec.ts";
import { machineOf, shownMachine } from "./shown.ts";
import { complete, type SliverHosts } from "./sliver-hosts.ts";
import { createSteps, gone, handOver, placed, removeSteps, unlist } from "./steps.ts";

/**
 * The slivers of some machines. The provider keeps no state: all state is in the machines' documents. What a sliver lends, and
 * the caches that it has a copy of, are looked for at each handover: it may be older than the configuration. `list` and `find` reject unless every machine answers, because
 * what they do not name is taken for gone.
 */
export function sliverProvider(
  hosts: SliverHosts,
  config: SliverProviderConfig,
  { clock, installation }: Pick<DriverContext, "clock" | "installation">,
): ProviderMethods {
  const owner = { installation, provider: config.name };
  return {
    offers: {
      types: { of: typeOf },
      console: {
        async read(tag, context) {
          const place = await placed(hosts, tag, context);
          return place === undefined ? null : hosts.get(place.machine).console(place.name, context.signal);
        },
      },
      slivers: {
        machines: (signal) =>
          Promise.all(
            hosts.all.map((host) =>
              machineOf(host.name, clock, signal, async (within) => {
                const report = await host.status(within);
                return shownMachine(report, { owner, leftAlone: host.taken(report)?.message });
              }),
            ),
          ),
      },
      handover: {
        ready: (tag, context) => handOver(hosts, tag, context),
        reconcile: (uses, signal) => reconcileUses(hosts, uses, signal),
      },
    },
    create: (order, context) => createSteps(hosts, config, order, context, () => clock.now()),
    remove: (tag, context) => removeSteps(hosts, tag, context),
    async find(tag, signal) {
      const place = await hosts.find(sliverName(tag), signal);
      return place === undefined ? undefined : externalId(place);
    },
    async list(signal) {
      const reports = await hosts.reports(signal);
      return reports.flatMap(({ host, report }) =>
        complete(report)
          .slivers.filter(({ name }) => name !== FREE)
          .map((one) => ({
            type: "instance",
            id: externalId({ machine: host.name, name: one.name, generation: one.generation }),
            tag: tagOf(one.tags),
            resources: guaranteesOf(one),
          })),
      );
    },
    async removeResource({ id, tag }, signal) {
      const place = placeOf(id);
      // A check of the id against the tag: an id from elsewhere must not end a sliver of the same name.
      if (place === undefined || tag === null || place.name !== sliverName(tag))
        throw new Error(`${idText(id)} is not a sliver of this provider's`);
      const host = hosts.get(place.machine);
      await unlist(host, tag, signal);
      await host.until((report) => gone(report, place.name), signal);
    },
    quota: (signal) => hosts.capacity(signal),
    async need(label, signal) {
      const need = needOf(label);
      // Throws for a label that fits on no machine, not even on an empty one.
      await hosts.judge(need, signal);
      return need;
    },
  };
}

/** Slivers with the same image and rspec start or fail alike, whatever their labels are called. */
function typeOf({ own }: LabelConfig): string {
  const { rspec, image, devices, caches } = own as SliverSettings;
  const amounts = Object.entries(rspec).sort(([a], [b]) => (a < b ? -1 : 1));
  return [
    image ?? "default",
    ...amounts.map(([name, amount]) => `${name}=${amount}`),
    ...devices,
    ...caches.folders,
    ...caches.rules.map(({ name, path, size }) => `${name}=${size} ${path ?? ""}`),
  ].join(" ");
}
