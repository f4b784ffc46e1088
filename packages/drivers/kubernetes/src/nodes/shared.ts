import type { OpenMethods, Resources } from "@nodeyard/driver";
import type { Site } from "../cluster.ts";
import type { KubeOrder } from "../config.ts";
import { type Project, projectOf } from "./project.ts";

/** Driver `openshiftpods`: pods in existing projects, named as their pools. A node's project is that of its tag: its pool may have left. */
export function sharedNodes(site: Site, closed: AbortSignal): OpenMethods {
  const { config, cluster, purpose } = site;
  const known = new Map<string, Project>();
  const of = (name: string): Project => {
    const project = known.get(name) ?? projectOf(site, name, closed);
    known.set(name, project);
    return project;
  };
  const handover = (name: string) => of(name).offers.handover!;
  const all = config.pools.map(({ name }) => of(name));
  const entered = () => all.filter((project) => project.closed() === null);
  return {
    place: () => cluster.place,
    offers: {
      handover: {
        ready: (tag, step) => handover(tag.pool).ready(tag, step),
        access: (tag, step) => handover(tag.pool).access!(tag, step),
      },
    },
    create: (order, step) => of(order.tag.pool).create(order, step),
    remove: (tag, step) => of(tag.pool).remove(tag, step),
    find: (tag, signal, stored) => of(tag.pool).find(tag, signal, stored),
    /** Pods that the credential can see in the pools' projects. Those of others use the quota, too. */
    async list(signal) {
      return (await Promise.all(entered().map((project) => project.list(signal)))).flat();
    },
    async removeResource(resource, signal) {
      if (resource.tag !== null) await of(resource.tag.pool).removeResource(resource, signal);
    },
    async quota(signal) {
      return common(await Promise.all(entered().map((project) => project.quota(signal))));
    },
    /** The pool is found by the label's identity, because several pools may have a label of that name. */
    async need(label, signal) {
      const pool = config.pools.find(({ labels }) => labels.get(label.name) === label);
      const { own } = label as KubeOrder["label"];
      return pool === undefined ? own.amounts : of(pool.name).need(label, signal);
    },
    /** Rejects when no project can be read, or when one cannot that is only looked at: a list without it would be incomplete. */
    async check(signal) {
      for (const project of all) {
        await project.enter(signal);
        if (purpose === "look" && project.closed() !== null) throw project.closed();
      }
      if (entered().length === 0) for (const project of all) throw project.closed();
    },
    close() {
      for (const project of known.values()) project.close();
      return site.release();
    },
  };
}

/** The sums of the amounts that all have: each pool has its own project, so only a limit that all projects have limits the provider. */
function common([first = {}, ...rest]: readonly Resources[]): Resources {
  const names = Object.keys(first).filter((name) => rest.every((one) => name in one));
  return Object.fromEntries(
    names.map((name) => [name, rest.reduce((sum, one) => sum + one[name]!, first[name]!)]),
  );
}
