import {
  type Cloud,
  type CreateOrder,
  DriverError,
  type StepContext,
  type Steps,
  type Tag,
} from "@nodeyard/driver";
import type { KubeObject } from "../client/index.ts";
import type { Site } from "../cluster.ts";
import type { KubeOrder } from "../config.ts";
import { CALL_MS, type Collection, objectsIn } from "./machines.ts";
import { hasEnded } from "./ready.ts";

/** In what nodes with a namespace of their own differ from pods of a shared project. */
export interface Nodes
  extends Collection,
    Required<Pick<Cloud<KubeObject>, "amounts" | "isEnding" | "need">> {
  /** Steps from the object to the ready pod of its node; undefined: the node is a namespace without one. */
  boot(order: KubeOrder, object: KubeObject, signal: AbortSignal): Steps<KubeObject | undefined>;
  /** The record's `connection_port` with a new token. Called at the launch, and before a ready node is handed out late. */
  portOf(object: KubeObject, signal: AbortSignal): Promise<Readonly<Record<string, unknown>>>;
  /** Rejects with "not-found" when more than the object itself is gone. */
  stands?(object: KubeObject, signal: AbortSignal): Promise<void>;
}

/** What the kit makes steps of. */
export function kubeCloud(
  site: Site,
  nodes: Nodes,
  closed: AbortSignal,
): Omit<Cloud<KubeObject>, "quota" | "check" | "close"> {
  const { cluster, clock } = site;
  const { context, tokenMs } = site.config.own;
  const objects = objectsIn(site, nodes, closed);
  /** The machine of the cluster on which an order's pod runs. */
  const hosts = new WeakMap<CreateOrder, string>();

  const standing = async (tag: Tag, { signal, externalId }: StepContext) => {
    const found = await objects.machines.existing(tag, externalId, signal);
    if (found !== undefined && !hasEnded(found)) return found;
    throw new DriverError("not-found", `the ${nodes.what} of node ${tag.nodeId} is gone or has ended`);
  };

  return {
    ...objects,
    async *expose(order: KubeOrder, object, signal) {
      const pod = yield* nodes.boot(order, object, signal);
      if (pod?.spec?.nodeName !== undefined) hosts.set(order, pod.spec.nodeName);
      yield { step: "token", deadlineMs: CALL_MS };
      // Nodepool's record has the pod's name as address, since a pod is not reached by one.
      return pod?.metadata.name ?? null;
    },
    describe: async (order, object, interfaceIp, signal) => ({
      ...{ interfaceIp, cloud: context, hostId: hosts.get(order) ?? null },
      // Empty rather than absent, so that the launcher does not scan.
      hostKeys: [],
      access: await nodes.portOf(object, signal),
    }),
    ...{ amounts: nodes.amounts, isEnding: nodes.isEnding, need: nodes.need },
    handover: {
      async ready(tag, step) {
        const object = await standing(tag, step);
        await nodes.stands?.(object, step.signal);
      },
      async access(tag, step) {
        const object = await standing(tag, step);
        const age = clock.now() - Date.parse(object.metadata.creationTimestamp ?? "");
        // A token younger than a quarter of its lifetime lasts for the job. With lifetime 0 tokens do not expire.
        return tokenMs === 0 || age < tokenMs / 4 ? undefined : nodes.portOf(object, step.signal);
      },
    },
    place: () => cluster.place,
  };
}
