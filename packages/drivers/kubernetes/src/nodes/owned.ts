import {
  type Clock,
  type CreateOrder,
  DriverError,
  deadline,
  LostMetadata,
  type Step,
  sameNode,
  type Tag,
  unlessRefused,
  wasRefused,
} from "@nodeyard/driver";
import {
  type Condition,
  type Connection,
  type KubeObject,
  type List,
  listAll,
  type ObjectWatch,
} from "../client/index.ts";
import { aboutOf } from "./about.ts";

/** Milliseconds for one call with its retries during a restart of the server. */
export const CALL_MS = 60_000;
/** Milliseconds until an object must be gone: pods may take their time to end. */
const GONE_MS = 600_000;
/**
 * Milliseconds without news of a deletion after which the object is read: the watch may be silent, and the server may have answered
 * "not found" for an object that it still has.
 */
const UNHEARD_MS = 10_000;
/** Milliseconds after which a namespace that says what keeps it from ending is not waited for any longer in this attempt. */
const HELD_MS = 60_000;
/** Conditions of a namespace that ends only when somebody does something: a job may have set a finalizer. */
const HELD = ["NamespaceFinalizersRemaining", "NamespaceDeletionContentFailure"];
/** The end of that wait; compared by identity. */
const UNHEARD = new Error("no news of a deletion");

/** A collection in which an object stands for a node: namespaces, projects, or the pods of one project. */
export interface Collection<T extends KubeObject> {
  readonly connection: Connection;
  readonly clock: Clock;
  /** Path of its API without a slash at the end: `/api/v1/namespaces`. A name is appended to it. */
  readonly path: string;
  /** Namespace of the collection; empty when it has none. */
  readonly namespace: string;
  /** What its objects are, for steps and messages. */
  readonly what: "namespace" | "pod";
  /** Label selector of this installation's objects; null when the server drops labels. */
  readonly ours: string | null;
  /** Rejects when the credential may not watch the collection. */
  watch(signal: AbortSignal): Promise<ObjectWatch<T>>;
  /** One call that creates the object with the order's tag on it. Rejects with reason AlreadyExists when the name is taken. */
  make(order: CreateOrder, name: string, signal: AbortSignal): Promise<T>;
}

/**
 * The objects of nodes in a collection: claimed by name, identified by their tag, deleted by uid. It keeps no state but the collection's
 * watch, so each method may be called again after a crash or a lost answer. Errors are the client's, and DriverErrors.
 */
export class Owned<T extends KubeObject> {
  readonly #in: Collection<T>;

  constructor(collection: Collection<T>) {
    this.#in = collection;
  }

  /** The object with the tag, as the watch shows it. `names` null: its name contains more than the tag says, so all are looked at. */
  async known(tag: Tag, names: readonly string[] | null, signal: AbortSignal): Promise<T | undefined> {
    const { namespace } = this.#in;
    const watch = await this.#in.watch(signal);
    for (const one of names?.map((name) => watch.get(name, namespace)) ?? watch.values())
      if (one !== undefined && isOf(one, tag)) return one;
    return undefined;
  }

  /**
   * The same, but asks the server when the watch does not show it. The watch may lag behind, and `remove` must not conclude from
   * that that a node has no object. What is found is added to the watch. `stored`: the name in the node's record, whose object counts
   * although it has lost labels and annotations, unless it is another node's.
   */
  async find(
    tag: Tag,
    names: readonly string[] | null,
    signal: AbortSignal,
    stored: string | null = null,
  ): Promise<T | undefined> {
    const known = await this.known(tag, names, signal);
    if (known !== undefined) return known;
    const { ours } = this.#in;
    const selector = `${ours},nodepool_provider_name=${tag.provider},nodepool_node_id=${tag.nodeId}`;
    // Without labels (projects) there is no selector, so the possible names are read one by one.
    const listed =
      ours === null
        ? await Promise.all((names ?? []).map((name) => this.#read(name, signal)))
        : await this.all(signal, { labelSelector: selector });
    const found =
      listed.find((one) => one !== undefined && isOf(one, tag)) ?? (await this.#stored(tag, stored, signal));
    if (found !== undefined) (await this.#in.watch(signal)).note(found);
    return found;
  }

  /** The object of a record's name: the node's by its annotation, or one that says nothing of any node. */
  async #stored(tag: Tag, name: string | null, signal: AbortSignal): Promise<T | undefined> {
    const there = name === null ? undefined : await this.#read(name, signal);
    if (there === undefined || there === FOREIGN) return undefined;
    return isOf(there, tag) || aboutOf(there).tag === null ? there : undefined;
  }

  /** All objects that the credential can list, with those of others. `query` restricts the list. Rejects rather than return a part. */
  async all(signal: AbortSignal, query: Readonly<Record<string, string>> = {}): Promise<readonly T[]> {
    const { connection, path } = this.#in;
    const { items } = await listAll((page) => connection.get<List<T>>({ path, query: page, signal }), query);
    return items;
  }

  /**
   * Steps that create the object under the first of these names that no other owner has, or find that an earlier attempt did.
   * `idOf`: the node's external id for a name, which is saved before the name is claimed.
   */
  async *claim(
    order: CreateOrder,
    names: readonly string[],
    idOf: (name: string) => string,
    signal: AbortSignal,
  ): AsyncGenerator<Step, T, void> {
    const { what } = this.#in;
    // A set, because a continued launch passes the name that it has already as the first one, which may also be the second.
    for (const name of new Set(names)) {
      yield { step: what, deadlineMs: GONE_MS, save: { externalId: idOf(name) } };
      const claimed = await this.#claim(order, name, signal);
      if (claimed !== undefined) return claimed;
    }
    // Fatal: another attempt would find the same owners.
    throw new DriverError("fatal", `${order.tag.provider}: others have ${what}s ${names.join(" and ")}`);
  }

  /**
   * Steps that delete everything that has the tag. `stored`: as in `find`; rejects with LostMetadata for an object that may be another's.
   */
  async *remove(
    tag: Tag,
    names: readonly string[] | null,
    signal: AbortSignal,
    stored: string | null = null,
  ): AsyncGenerator<Step, void, void> {
    yield { step: "delete", deadlineMs: CALL_MS };
    // More than one object may have the tag, when a lost answer made an earlier attempt take the second name. All are deleted.
    let there = await this.find(tag, names, signal, stored);
    while (there !== undefined) {
      if (!isOf(there, tag)) throw new LostMetadata(there.metadata.name, tag.nodeId);
      await this.#delete(there, signal);
      yield { step: "gone", deadlineMs: GONE_MS };
      await this.#gone(there, signal);
      // The watch has seen the deletion, so the server is not asked again.
      there = await this.known(tag, names, signal);
    }
  }

  /** Deletes one object, and resolves when it is gone. Kubernetes removes a namespace only after everything in it. */
  async erase(object: T, signal: AbortSignal): Promise<void> {
    await this.#delete(object, signal);
    await this.#gone(object, signal);
  }

  /**
   * Undefined when the name is taken by another owner. Creating first and reading only on a conflict saves a call, and leaves the
   * decision between two launchers to the server. An object of this node that is being deleted is waited for, then made anew. The
   * loop ends with the step's deadline.
   */
  async #claim(order: CreateOrder, name: string, signal: AbortSignal): Promise<T | undefined> {
    const watch = await this.#in.watch(signal);
    for (;;) {
      try {
        const made = await this.#in.make(order, name, signal);
        // The answer to a ProjectRequest has no version.
        if (made.metadata.resourceVersion) watch.note(made);
        return made;
      } catch (error) {
        if (!wasRefused(error, "AlreadyExists")) throw error;
      }
      const there = await this.#read(name, signal);
      // Deleted between the two calls: the name is free.
      if (there === undefined) continue;
      if (!isOf(there, order.tag)) return undefined;
      watch.note(there);
      if (there.metadata.deletionTimestamp === undefined) return there;
      await this.#gone(there, signal);
    }
  }

  /** Unless the name belongs to another object now (checked by uid). A missing object is no error. */
  async #delete({ metadata: { name, uid } }: T, signal: AbortSignal): Promise<void> {
    const { connection, path } = this.#in;
    const body = { propagationPolicy: "Background", preconditions: { uid } };
    // 409: the name belongs to another object now, or the deletion has begun already. `#gone` waits for the right one.
    await unlessRefused(connection.delete({ path: `${path}/${name}`, body, signal }), 404, 409);
  }

  /**
   * Resolves when there is no object with this uid under the name, as the watch says or, without news of it, the server. A later object of
   * the same name is another one. An object whose deletion has not begun is deleted again.
   */
  async #gone(object: T, signal: AbortSignal): Promise<void> {
    const { name, uid } = object.metadata;
    const watch = await this.#in.watch(signal);
    const place = { name, namespace: this.#in.namespace };
    const began = this.#in.clock.monotonic();
    for (let patienceMs = UNHEARD_MS; ; ) {
      using limit = deadline(this.#in.clock, patienceMs, () => UNHEARD, signal);
      try {
        await watch.wait(place, (there) => (there?.metadata.uid === uid ? undefined : true), limit.signal);
        return;
      } catch (error) {
        if (error !== UNHEARD) throw error;
      }
      const { metadata: seen } = watch.get(name, place.namespace) ?? {};
      if (patienceMs === UNHEARD_MS && seen?.uid === uid && seen.deletionTimestamp !== undefined) {
        // The watch tells of the deletion, so it will tell of the end: a namespace with a pod takes longer than that.
        patienceMs = HELD_MS;
        continue;
      }
      const there = await this.#read(name, signal);
      // FOREIGN: a project that is gone cannot be read any more, as one of another owner. Its deletion was accepted.
      if (there?.metadata.uid !== uid) return watch.forget(object);
      watch.note(there);
      if (there.metadata.deletionTimestamp === undefined) await this.#delete(there, signal);
      const held = heldBy(there);
      if (held !== undefined && this.#in.clock.monotonic() - began >= HELD_MS)
        throw new DriverError("transient", `${this.#in.what} ${name} does not end: ${held}`);
    }
  }

  /** The object from the server; undefined when there is none; FOREIGN when the name is taken by one that this credential may not read. */
  async #read(name: string, signal: AbortSignal): Promise<T | undefined> {
    const { connection, path, ours } = this.#in;
    try {
      return await connection.get<T>({ path: `${path}/${name}`, signal });
    } catch (error) {
      if (wasRefused(error, 404)) return undefined;
      // OpenShift answers 403 for a project of another owner, also for reads. The name is taken.
      if (wasRefused(error, 403) && ours === null) return FOREIGN as T;
      throw error;
    }
  }
}

/** Stands for a project of another owner. It has no tag, so that no node owns it. */
const FOREIGN: KubeObject = { metadata: { name: "", uid: "", resourceVersion: "" } };

/** What keeps a namespace from ending, in its own words. */
function heldBy(object: KubeObject & { readonly status?: { readonly conditions?: readonly Condition[] } }) {
  const condition = object.status?.conditions?.find(
    ({ type, status }) => HELD.includes(type) && status === "True",
  );
  return condition && (condition.message ?? condition.type);
}

function isOf(object: KubeObject, tag: Tag): boolean {
  return sameNode(aboutOf(object).tag, tag);
}
