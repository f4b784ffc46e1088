import {
  type Cloud,
  DriverError,
  deadline,
  GONE_MS,
  NodeMachines,
  sameNode,
  tagOf,
  unlessRefused,
  wasRefused,
} from "@nodeyard/driver";
import { sleep } from "@nodeyard/runtime";
import { type KubeObject, listAll, type ObjectWatch } from "../client/index.ts";
import type { Site } from "../cluster.ts";
import type { KubeOrder } from "../config.ts";
import { SUBDOMAIN } from "../grammar.ts";
import { aboutOf, markOf, metadataOf } from "./about.ts";
import { conditionOf, failureOf, hasEnded } from "./ready.ts";

/** Milliseconds for one call with its retries during a restart of the server. */
export const CALL_MS = 60_000;
/** Milliseconds without news of an object after which it is read: the watch may be silent, or a deletion not have been heard. */
const UNHEARD_MS = 10_000;
/** The same for an object of which the watch tells that it ends: a namespace with a pod takes its time. */
const HELD_MS = 60_000;
/** Pause before another try at a name that was taken and has no object any more, milliseconds. */
const FREE_MS = 1_000;
/** Conditions of a namespace that ends only when somebody does something: a job may have set a finalizer. */
const HELD = ["NamespaceFinalizersRemaining", "NamespaceDeletionContentFailure"];
/** The end of a wait for news; compared by identity. */
const UNHEARD = new Error("no news of an object");

/** A collection in which an object stands for a node: namespaces, projects, or the pods of one project. */
export interface Collection {
  /** Path of its API without a slash at the end: `/api/v1/namespaces`. */
  readonly path: string;
  /** Namespace of the collection; empty when it has none. */
  readonly namespace: string;
  /** What its objects are, for steps and messages. */
  readonly what: "namespace" | "pod";
  /** The server answers 403 for what is another owner's or gone. */
  readonly isProject: boolean;
  /** Rejects when the credential may not watch the collection. */
  watch(signal: AbortSignal): Promise<ObjectWatch>;
  /** Nodepool's name for the order's object. Another one is made of it for when it is taken. */
  nameOf(order: KubeOrder): string;
  /** One call that creates the object with the order's tag on it. Rejects with reason AlreadyExists when the name is taken. */
  make(order: KubeOrder, name: string, signal: AbortSignal): Promise<KubeObject>;
}

/** Objects as machines: claimed by name, known by tag, deleted by uid. Names come again, so that an id here is `NAME/UID`, in records the name. */
export function objectsIn(
  { cluster, clock, installation }: Pick<Site, "cluster" | "clock" | "installation">,
  collection: Collection,
  closed: AbortSignal,
): Pick<Cloud<KubeObject>, "machines" | "make" | "makeMs" | "stored" | "last"> {
  const { path, namespace, what, isProject } = collection;
  const prefix = namespace === "" ? "" : `${namespace}-`;
  const get = (name: string, signal: AbortSignal) =>
    cluster.get<KubeObject>({ path: `${path}/${name}`, signal });

  /** Reads an object, and tells the watch. Undefined: there is none, or another one has its name. */
  async function read(id: string, signal: AbortSignal): Promise<KubeObject | undefined> {
    const { name, uid } = partsOf(id);
    const there = await unlessRefused(get(name, signal), 404, ...(isProject ? [403] : []));
    const known = await collection.watch(signal);
    const seen = known.get(name, namespace);
    if (there !== undefined) known.note(there);
    if (seen !== undefined && seen.metadata.uid !== there?.metadata.uid) known.forget(seen);
    return only(there, uid);
  }

  /** Requests the deletion of an object. From a listing, its id is the name alone, which may be another owner's by now. */
  async function remove(id: string, signal: AbortSignal): Promise<void> {
    const { name, uid } = partsOf(id);
    if (uid === undefined) {
      const there = await read(id, signal);
      const isOurs = there !== undefined && aboutOf(there).tag?.installation === installation;
      return isOurs ? remove(idOf(there), signal) : undefined;
    }
    const body = { propagationPolicy: "Background", preconditions: { uid } };
    // 409: the name belongs to another object now, or the deletion has begun already.
    const call = cluster.delete<KubeObject>({ path: `${path}/${name}`, body, signal });
    const left = await unlessRefused(call, 404, 409);
    const known = await collection.watch(signal);
    // A busy server tells the watch late, and a deletion of which nothing is heard is repeated. What is gone already is not known any more.
    const isKnown = left?.metadata.uid === uid && known.get(name, namespace)?.metadata.uid === uid;
    if (isKnown && left?.metadata.deletionTimestamp !== undefined) known.note(left);
  }

  /** Waits for news of an object; without any, looks for itself. */
  const wait: NodeMachines<KubeObject>["watch"]["wait"] = async (kind, id, judge, signal) => {
    const { name, uid } = partsOf(id);
    const known = await collection.watch(signal);
    const began = clock.monotonic();
    for (let heard = began; ; ) {
      using limit = deadline(clock, UNHEARD_MS, () => UNHEARD, signal);
      const seen = (one: KubeObject | undefined, last: KubeObject | undefined) =>
        judge({ item: only(one, uid), departed: false, whole: true, sure: last !== undefined });
      try {
        return await known.wait({ name, namespace }, seen, limit.signal);
      } catch (error) {
        if (error !== UNHEARD) throw error;
      }
      const isEnding = known.get(name, namespace)?.metadata.deletionTimestamp !== undefined;
      if (isEnding && clock.monotonic() - heard < HELD_MS) continue;
      heard = clock.monotonic();
      const there = await read(id, signal);
      const held = HELD.map((type) => there && conditionOf(there, type)).find(
        (one) => one?.status === "True",
      );
      if (kind === "gone" && held !== undefined && heard - began >= HELD_MS)
        throw new DriverError("transient", `${what} ${name} does not end: ${held.message ?? held.type}`);
    }
  };

  const byId = (objects: Iterable<KubeObject>) => new Map([...objects].map((one) => [idOf(one), one]));
  const stored = (id: string) => `${prefix}${partsOf(id).name}`;
  const machines = new NodeMachines<KubeObject>({
    ...{ clock, closed, what, read, metadataOf, idOf, createMs: GONE_MS },
    watch: {
      wait,
      async all(signal, now) {
        const known = await collection.watch(signal);
        if (now) await known.list(signal);
        return byId(known.values());
      },
      whole: async (signal) => byId((await listAll<KubeObject>(cluster, path, signal)).items),
    },
    externalIdOf: (object) => stored(idOf(object)),
    idIn(id) {
      const isName = typeof id === "string" && SUBDOMAIN.holds(id) && id.startsWith(prefix);
      return isName ? id.slice(prefix.length) : undefined;
    },
    isUp: () => true,
    hasFailed: hasEnded,
    failure(object, place) {
      const { kind, why } = failureOf(object)!;
      return new DriverError(kind, `${place}: ${what} ${object.metadata.name}: ${why}`);
    },
    isLeaving: ({ metadata }) => metadata.deletionTimestamp !== undefined,
    delete: remove,
  });
  const removed = async (object: KubeObject, provider: string, signal: AbortSignal) => {
    await remove(idOf(object), signal);
    await machines.gone(idOf(object), provider, signal);
  };

  /**
   * Creates the order's object, or finds that an earlier attempt did; undefined: the name is another owner's. One of this node that ends is
   * waited for. Creating first saves a call, and leaves the decision between two launchers to the server.
   */
  async function claim(order: KubeOrder, name: string, signal: AbortSignal): Promise<string | undefined> {
    const known = await collection.watch(signal);
    for (;;) {
      const made = await unlessRefused(collection.make(order, name, signal), "AlreadyExists");
      // The answer to a ProjectRequest has no version.
      if (made?.metadata.resourceVersion) known.note(made);
      if (made !== undefined) return idOf(made);
      const there = await unlessRefused(get(name, signal), 404).catch((error: unknown) => {
        if (isProject && wasRefused(error, 403)) return null;
        throw error;
      });
      if (there === null) return undefined;
      // Deleted between the two calls: the name is free, or will be as soon as the server knows.
      if (there === undefined) await sleep(clock, FREE_MS, signal);
      else if (!sameNode(aboutOf(there).tag, order.tag)) return undefined;
      else {
        known.note(there);
        if (!hasEnded(there)) return idOf(there);
        await removed(there, order.tag.provider, signal);
      }
    }
  }

  return {
    machines,
    stored,
    makeMs: GONE_MS,
    make: async (order: KubeOrder) => async (signal) => {
      // The record gets the name only when it is this node's: by another's, a removal would look at what is not its own.
      const first = collection.nameOf(order);
      const names = [first, `${first}-${markOf(order.tag)}`];
      for (const name of names) {
        const id = await claim(order, name, signal);
        if (id !== undefined) return id;
      }
      // Fatal: another attempt would find the same owners.
      throw new DriverError("fatal", `others have ${what}s ${names.join(" and ")}`);
    },
    /** A launcher whose watch was behind may have taken both names. */
    async *last(tag, { signal }) {
      for (const one of [...(await collection.watch(signal)).values()]) {
        if (!sameNode(tagOf(metadataOf(one)), tag)) continue;
        yield { step: "gone", deadlineMs: GONE_MS };
        await removed(one, tag.provider, signal);
      }
    },
  };
}

/** The answer to a ProjectRequest has no uid. */
function idOf({ metadata: { name, uid } }: KubeObject): string {
  return uid ? `${name}/${uid}` : name;
}

function partsOf(id: string): { readonly name: string; readonly uid: string | undefined } {
  const [name = "", uid] = id.split("/");
  return { name, uid };
}

/** The object, unless it is another one of the name. */
function only(object: KubeObject | undefined, uid: string | undefined): KubeObject | undefined {
  return uid === undefined || object?.metadata.uid === uid ? object : undefined;
}
