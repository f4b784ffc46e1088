import { messageOf } from "@nodeyard/runtime";
import type { Log } from "@nodeyard/telemetry";
import type { Change, Feed, FeedOptions, Tree } from "@nodeyard/tree";
import {
  type Assignment,
  type Component,
  decodeAssignment,
  decodeComponent,
  decodeLifecycle,
  decodeNode,
  decodeRequest,
  type Lifecycle,
  type NodesetRequest,
  type StoredNode,
} from "./records.ts";

const ALL_NODES = "/zuul/nodes";
export const NODES = "/zuul/nodes/nodes";
export const NODE_LOCKS = "/zuul/nodes/locks";
export const REQUESTS = "/zuul/nodeset/requests";
const COMPONENTS = "/zuul/components";

/** A node of the connection with all that stands beside it. */
export interface Known {
  stored?: StoredNode;
  assignment?: Assignment;
  lifecycle?: Lifecycle;
}

/** Of a record; undefined: it is gone, null: it has none that is of interest. */
type Data = { readonly bytes: Uint8Array; readonly version: number } | undefined | null;

/** Zuul's records of one connection, in memory. */
export class ZuulView {
  readonly nodes = new Map<string, Known>();
  readonly requests = new Map<string, { readonly value: NodesetRequest; readonly version: number }>();
  readonly components = new Map<string, Component>();
  /** Contenders for the locks of nodes. */
  readonly #contenders = new Map<string, Set<string>>();
  readonly #feeds: readonly Feed[];
  readonly #connection: string;
  readonly #log: Log;
  readonly #changed: (node: string | undefined) => void;
  readonly #reported = new Set<string>();
  /** Feeds that have reported everything since their last gap. */
  readonly #synced = new Set<string>();

  /** `changed` is called with the node that a change is about; undefined: it may be about any. */
  constructor(tree: Tree, connection: string, log: Log, changed: (node: string | undefined) => void) {
    this.#connection = connection;
    this.#log = log;
    this.#changed = changed;
    const depth = (path: string) => path.split("/").length;
    const feed = (
      root: string,
      take: (path: string, data: Data) => void,
      options: Pick<FeedOptions, "interest" | "descend">,
    ) => tree.feed(root, { ...options, onChange: (change) => this.#take(root, change, take) });
    // Each of these stands below its root, or below a folder for its kind.
    const flat: Pick<FeedOptions, "interest" | "descend"> = {
      interest: (path) => (depth(path) === 5 ? "data" : "none"),
      descend: (path) => depth(path) < 5,
    };
    this.#feeds = [
      feed(ALL_NODES, (path, data) => this.#node(path, data), {
        interest: (path) => {
          const [, , , kind, , below] = path.split("/");
          if (kind === "locks") return depth(path) === 6 ? "name" : "none";
          if (kind !== "nodes" || depth(path) < 5) return "none";
          return depth(path) === 5 || /^(assignment|lifecycle)$/.test(below!) ? "data" : "none";
        },
        descend: (path) => depth(path) < 6,
      }),
      feed(REQUESTS, (path, data) => this.#request(path, data), flat),
      feed(COMPONENTS, (path, data) => this.#component(path, data), flat),
    ];
  }

  /** False until everything was read, and while changes may have been missed. */
  get complete(): boolean {
    return this.#synced.size === this.#feeds.length;
  }

  isLocked(node: string): boolean {
    return (this.#contenders.get(node)?.size ?? 0) > 0;
  }

  async close(): Promise<void> {
    await Promise.all(this.#feeds.map((feed) => feed.close()));
  }

  #take(root: string, change: Change, take: (path: string, data: Data) => void): void {
    if (change.type === "gap") this.#synced.delete(root);
    else if (change.type === "synced") {
      this.#synced.add(root);
      this.#changed(undefined);
    } else if (change.type === "remove") take(change.path, undefined);
    else
      take(change.path, change.data && change.stat && { bytes: change.data, version: change.stat.version });
  }

  #node(path: string, data: Data): void {
    const [, , , kind, node, below] = path.split("/") as [string, string, string, string, string, string?];
    if (node === undefined) return;
    if (kind === "locks") {
      const contenders = this.#contenders.get(node) ?? new Set();
      if (data === undefined && below !== undefined && contenders.delete(below) && contenders.size === 0)
        this.#contenders.delete(node);
      else if (data !== undefined && below !== undefined) this.#contenders.set(node, contenders.add(below));
      if (this.nodes.has(node)) this.#changed(node);
      return;
    }
    if (below === undefined && data == null) {
      if (this.nodes.delete(node)) this.#changed(node);
      return;
    }
    this.#readable(path, () => {
      const known = this.nodes.get(node) ?? {};
      if (below === "assignment") {
        if (data == null) delete known.assignment;
        else known.assignment = decodeAssignment(path, data.bytes);
      } else if (below === "lifecycle") {
        if (data == null) delete known.lifecycle;
        else known.lifecycle = decodeLifecycle(path, data.bytes);
      } else if (data != null) known.stored = decodeNode(path, data.bytes);
      // What stands beside a node may be read before it.
      if (known.stored === undefined && data == null) return;
      this.nodes.set(node, known);
      this.#changed(node);
    });
  }

  #request(path: string, data: Data): void {
    const id = path.split("/")[4];
    if (id === undefined) return;
    if (data == null) this.requests.delete(id);
    else
      this.#readable(path, () => {
        this.requests.set(id, { value: decodeRequest(path, data.bytes), version: data.version });
      });
    for (const [node, { assignment }] of this.nodes) if (assignment?.request_id === id) this.#changed(node);
  }

  #component(path: string, data: Data): void {
    if (data == null) this.components.delete(path);
    else this.#readable(path, () => this.components.set(path, decodeComponent(path, data.bytes)));
    this.#changed(undefined);
  }

  /** Whether a node is the connector's: of its connection, and readable. */
  ours(node: string): Known | undefined {
    const known = this.nodes.get(node);
    return known?.stored?.node.connection_name === this.#connection ? known : undefined;
  }

  /** A record that is not understood is left alone and reported once; all others are served. */
  #readable(path: string, read: () => void): void {
    try {
      read();
    } catch (error) {
      if (this.#reported.size > 1_000) this.#reported.clear();
      if (this.#reported.has(path)) return;
      this.#reported.add(path);
      this.#log.error({ path }, messageOf(error));
    }
  }
}
