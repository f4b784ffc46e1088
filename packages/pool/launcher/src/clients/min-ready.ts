import { KeyedController, withRoot } from "@nodeyard/coordination";
import {
  changeNode,
  decodeNode,
  encodeNode,
  encodeRequest,
  MIN_READY,
  type NodeRecord,
  newRequest,
  paths,
} from "@nodeyard/model";
import { hexId, messageOf } from "@nodeyard/runtime";
import { type Op, orUndefined, TreeError, treeSeconds } from "@nodeyard/tree";
import type { RequestEntry, ViewEvent } from "@nodeyard/view";
import type { Handles } from "../handles.ts";

/**
 * The requestor of this session's min-ready requests: when one ends, its nodes are freed and the request goes. Whose request it is
 * shows in its event id, which is noted before the request is written: a lost reply orphans nothing. How many requests are made and
 * when is the scheduler's decision (scheduler/min-ready.ts).
 */
export class MinReady {
  readonly #context: Handles;
  /** Event ids of the requests that this session wrote or may have written: noted before the tree is asked. */
  readonly #own = new Set<string>();
  readonly #controllers: KeyedController;

  constructor(context: Handles) {
    this.#context = context;
    context.view.follow((event) => this.#onEvent(event));
    this.#controllers = new KeyedController(context, (id) => ({
      name: `min-ready request ${id}`,
      site: "launcher/clients/min-ready.ts",
      reconcile: () => this.#reconcile(id),
    }));
  }

  /**
   * Writes `count` one-node requests of priority 900 that end with this session (docs/contract/launcher.md, "min-ready"). Rejects with
   * the first error; requests that were written remain, and count as asked for.
   */
  async request(label: string, count: number): Promise<void> {
    await Promise.all(Array.from({ length: count }, () => this.#write(label)));
  }

  /** One request. After an unknown outcome its event id stays noted, because the request may exist. */
  async #write(label: string): Promise<void> {
    const { tree, random } = this.#context;
    const eventId = hexId(random);
    const record = newRequest(
      {
        state: "requested",
        nodeTypes: [label],
        requestor: MIN_READY,
        reuse: false,
        eventId,
        // Nodepool leaves it out of its own requests (docs/contract/records.md, "Node request").
        createdTime: null,
      },
      treeSeconds(this.#context),
    );
    const data = encodeRequest(record);
    this.#own.add(eventId);
    try {
      await withRoot(tree, paths.requests, () =>
        tree.create(`${paths.requests}/900-`, data, { ephemeral: true, sequential: true }),
      );
    } catch (error) {
      if (error instanceof TreeError && error.outcome === "none") this.#own.delete(eventId);
      throw error;
    }
  }

  /** Requests of other launchers are theirs to end. */
  #onEvent(event: ViewEvent): void {
    if (event.type === "request" && this.#own.has(event.after?.record.eventId ?? ""))
      this.#controllers.wake(event.id);
  }

  /** The session is lost, and with it the requests. */
  forget(): void {
    this.#own.clear();
  }

  /** Looks at all that there are: the slow resync. */
  sweep(): void {
    for (const id of this.#context.view.requests.byRequestor.get(MIN_READY)) this.#controllers.wake(id);
  }

  close(): void {
    void this.#controllers.close();
  }

  async #reconcile(id: string): Promise<undefined> {
    const entry = this.#context.view.requests.byId.get(id);
    const event = entry?.record.eventId ?? "";
    if (entry === undefined || !this.#own.has(event)) return;
    if (entry.record.state !== "fulfilled" && entry.record.state !== "failed") return;
    await retireMinReady(this.#context, entry);
    this.#own.delete(event);
  }
}

/** How the record of a node is found: in the view, or in the tree. */
type Look = (
  context: Handles,
  id: string,
) => Promise<{ readonly record: NodeRecord; readonly version: number } | undefined>;

/**
 * Ends a min-ready request of this launcher: its nodes become free for all requests and the request is deleted, in one commit. The
 * first try uses the records of the view; after a lost reply the view may be behind, so that the next try reads them. A request that
 * others keep changing is left to the sweep, which frees nodes of deleted requests.
 */
async function retireMinReady(context: Handles, entry: RequestEntry): Promise<void> {
  const remove: Op = { op: "delete", path: paths.request(entry.id) };
  for (const look of [seen, read]) {
    try {
      await context.tree.commit([...(await freeAll(context, entry, look)), remove]);
      return;
    } catch (error) {
      if (!(error instanceof TreeError)) throw error;
      context.log.debug(
        { request: entry.id, error: messageOf(error) },
        "cannot free the nodes of a min-ready request together with it",
      );
    }
  }
  await orUndefined(context.tree.delete(remove.path));
}

/** The writes that free those nodes of the request which are still its own. */
async function freeAll(context: Handles, entry: RequestEntry, look: Look): Promise<readonly Op[]> {
  const free: Op[] = [];
  for (const id of entry.record.nodes) {
    const node = await look(context, id);
    // Another client has taken the node or deletes it.
    if (node === undefined || node.record.allocatedTo !== entry.id || node.record.state !== "ready") continue;
    const data = encodeNode(changeNode(node.record, { allocatedTo: null }, treeSeconds(context)));
    free.push({ op: "set", path: paths.node(id), data, version: node.version });
  }
  return free;
}

const seen: Look = async ({ view }, id) => view.nodes.byId.get(id);

const read: Look = async ({ tree }, id) => {
  const found = await orUndefined(tree.get(paths.node(id)));
  return found && { record: decodeNode(id, found.data), version: found.stat.version };
};
