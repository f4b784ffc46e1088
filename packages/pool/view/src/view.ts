import { type ComponentRecord, decodeComponent, readableNode } from "@nodeyard/model";
import { type Clock, jitter, messageOf, type Random } from "@nodeyard/runtime";
import type { Counters, Log } from "@nodeyard/telemetry";
import type { Change, Feed, Tree } from "@nodeyard/tree";
import type { ComponentEntry, OwnEntry, UnreadableEntry, ViewEvent } from "./entries.ts";
import { ImageTable } from "./image-table.ts";
import { interestOf, mayHold, onlyBelow } from "./interest.ts";
import { NodeTable } from "./node-table.ts";
import { type ParsedPath, parsePath } from "./paths.ts";
import { RequestTable } from "./request-table.ts";
import { SlotTable } from "./slot-table.ts";
import { StandingTable } from "./standing-table.ts";
import { UnreadableTable } from "./unreadable.ts";

/** Options of a view. */
export interface ViewOptions {
  readonly tree: Tree;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly counters: Counters;
  /**
   * Time between two comparisons of the whole view with the tree, milliseconds. Absent: a minute. Each is varied, so that launchers do
   * not all read at once. Of a large tree they come less often (RESTS).
   */
  readonly resyncMs?: number;
}

const SKIPPED =
  'skipped a record that cannot be read; it counts as existing until it is repaired or removed ("nodeyard delete" removes that of a node)';

/**
 * The pause after a comparison is so many times what it took: a lost event is rare and only delays, and ten launchers at a hundred thousand
 * nodes would keep a server busy with nothing else (docs/design/scale.md).
 */
const RESTS = 30;
/** And at most so long, milliseconds: a process that was stopped meanwhile takes that for time of the comparison. */
const LONGEST_REST_MS = 600_000;

type Listener = (event: ViewEvent) => void;
/** `isNew`: false for what is there when it begins to follow. */
type Follower = (event: ViewEvent, isNew: boolean) => void;

/** One feed each: a gap below one of them costs a comparison of that part only. */
const ROOTS = [
  "/nodepool/nodes",
  "/nodepool/requests",
  "/nodepool/components",
  "/nodepool/images",
  "/nodeyard",
] as const;

/**
 * The indexed copy of the tree in memory. It only reads. Listeners are called synchronously and in the order in which they were added.
 * A write of this process is in the view before the promise of the write resolves. A listener must not throw: the others would miss
 * the event. Built once per process, and handed to all that read the tree.
 */
export class View {
  readonly nodes = new NodeTable();
  readonly requests = new RequestTable();
  /** By `<kind>/<name of the znode>`. */
  readonly components = new Map<string, ComponentEntry>();
  readonly images = new ImageTable();
  /** By path: records of Nodeyard whose data is read (interest.ts), not decoded. */
  readonly own = new Map<string, OwnEntry>();
  readonly unreadable = new UnreadableTable();
  readonly slots = new SlotTable();
  readonly standings = new StandingTable();
  readonly #options: ViewOptions;
  readonly #listeners = new Set<Listener>();
  /** Begin when the view is whole for the first time; undefined: it was. */
  #followers: Follower[] | undefined = [];
  readonly #feeds = new Map<string, Feed>();
  /** Roots that are not synced since their last gap. */
  readonly #open = new Set<string>(ROOTS);
  /** Aborted by `close`, so that a comparison that ends later sets no timer. */
  readonly #stop = new AbortController();
  #timer: { cancel(): void } | undefined;
  /** How often events may have been missed. */
  #gaps = 0;

  constructor(options: ViewOptions) {
    this.#options = options;
  }

  /** Whether the view contains everything that it follows. False while a feed may have missed events: then nothing is decided. */
  get complete(): boolean {
    return this.#open.size === 0;
  }

  /**
   * Starts to follow the tree; resolves when the view is complete for the first time. Until then `complete` is false, while events
   * come already. Rejects when a feed is closed before.
   */
  async start(): Promise<void> {
    for (const root of ROOTS) {
      this.#feeds.set(
        root,
        this.#options.tree.feed(root, {
          interest: interestOf,
          descend: mayHold,
          only: onlyBelow,
          onChange: (change) => this.#take(root, change),
          // Reads in flight at once: a large tree is read at a start within seconds.
          concurrency: 1024,
        }),
      );
    }
    await Promise.all([...this.#feeds.values()].map((feed) => feed.synced));
    const followers = this.#followers ?? [];
    this.#followers = undefined;
    for (const follower of followers) this.follow(follower);
    this.#scheduleResync();
  }

  /** Whether there is a record of a node, readable or not. */
  hasNode(id: string): boolean {
    return this.nodes.byId.has(id) || this.unreadable.nodes.has(id);
  }

  /** Returns a function that ends the calls. Events that are being delivered may still reach the listener. */
  onEvent(listener: Listener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * For a part that keeps what it hears: once the view is whole for the first time it is called with all that is there, and from then on
   * as a listener, so that each record reaches it once. It may begin to follow before the view is started.
   */
  follow(follower: Follower): void {
    if (this.#followers !== undefined) {
      this.#followers.push(follower);
      return;
    }
    for (const event of this.#present()) follower(event, false);
    this.onEvent((event) => follower(event, true));
  }

  /** What is there, as events: unreadable records before those that depend on them. */
  *#present(): Iterable<ViewEvent> {
    for (const [path, after] of this.unreadable.byPath) yield { type: "unreadable", path, after };
    for (const [id, after] of this.nodes.byId) yield { type: "node", id, after };
    for (const [id, after] of this.requests.byId) yield { type: "request", id, after };
    for (const id of this.slots.backings.keys()) yield { type: "backing", id, after: this.slots.facts(id) };
    for (const image of this.images.names()) yield { type: "image", image, after: this.images.get(image) };
    for (const [key, after] of this.components) yield { type: "component", key, after };
    for (const [path, after] of this.own) yield { type: "own", path, after };
  }

  /**
   * Compares the view, or the part below one root, with the tree. When it resolves, the view has all writes from before the call.
   * Rejects when the view is closed or a read fails; the view then is what it was.
   */
  async resync(root?: (typeof ROOTS)[number]): Promise<void> {
    const feeds = [...this.#feeds].filter(([each]) => root === undefined || each === root);
    await Promise.all(feeds.map(([, feed]) => feed.resync()));
  }

  /** Outstanding reads by root; when there are none, the view is up to date. */
  backlog(): ReadonlyMap<string, ReturnType<Feed["pending"]>> {
    return new Map([...this.#feeds].map(([root, feed]) => [root, feed.pending()]));
  }

  async close(): Promise<void> {
    this.#stop.abort(new Error("the view is closed"));
    this.#timer?.cancel();
    await Promise.all([...this.#feeds.values()].map((feed) => feed.close()));
  }

  /** Compares the view with the whole tree from time to time, so that a lost event only delays the work. */
  #scheduleResync(tookMs = 0): void {
    const { clock, random, log, resyncMs = 60_000 } = this.#options;
    this.#timer = clock.setTimer(
      jitter(random, Math.max(resyncMs, Math.min(RESTS * tookMs, LONGEST_REST_MS))),
      () => {
        const [began, gaps] = [clock.monotonic(), this.#gaps];
        this.resync()
          .catch((error) =>
            log.warn({ error: messageOf(error) }, "cannot compare the view with the tree; will retry"),
          )
          // One that waited for a connection says nothing of the tree.
          .finally(() => this.#scheduleResync(gaps === this.#gaps ? clock.monotonic() - began : 0));
      },
      { background: true },
    );
    if (this.#stop.signal.aborted) this.#timer.cancel();
  }

  /** Takes one report of a feed. */
  #take(root: string, change: Change): void {
    switch (change.type) {
      case "gap":
        this.#gaps++;
        this.#options.counters.add("view.gaps", 1, { root });
        return this.#setOpen(root, true);
      case "synced":
        return this.#setOpen(root, false);
      case "put":
        return this.#put(change);
      case "remove":
        this.#emit(this.#remove(change.path));
        return this.#emit(this.unreadable.remove(change.path));
    }
  }

  /** Reports `complete` when the first root opens or the last one closes, and not for the others. */
  #setOpen(root: string, open: boolean): void {
    const was = this.complete;
    if (open) this.#open.add(root);
    else this.#open.delete(root);
    if (was !== this.complete) this.#emit({ type: "complete", complete: this.complete });
  }

  #put(change: Extract<Change, { type: "put" }>): void {
    const { path, data, stat } = change;
    const place = parsePath(path);
    // A path that never had data is only the parent of a lock; a path whose data was emptied was a record.
    if (data?.length === 0 && (stat?.version ?? 0) > 0 && RECORDS.has(place.kind))
      return this.#keepUnread(place, change, "record.empty", `${path} has no data any more`);
    let event: ViewEvent | undefined;
    try {
      event = this.#read(place, change);
    } catch (error) {
      const { code = "unknown" } = error as { code?: string };
      return this.#keepUnread(place, change, code, messageOf(error));
    }
    // First the record, then that it can be read again: it is in one of the two tables at any moment.
    this.#emit(event);
    if (stat !== undefined) this.#emit(this.unreadable.remove(path));
  }

  /** Throws a RecordError for an unreadable record. */
  #read(place: ParsedPath, { path, data, stat }: Extract<Change, { type: "put" }>): ViewEvent | undefined {
    if (place.kind === "contender") return this.nodes.putContender(place.id, place.name);
    if (place.kind === "image-pause") return this.images.setPaused(place.image, true);
    if (place.kind === "image-request") return this.images.setRequested(place.image, true);
    // The feed reports a name that it need not read.
    if (data === undefined || stat === undefined) return undefined;
    switch (place.kind) {
      case "node":
        return this.nodes.put(place.id, data, stat.version);
      case "request":
        return this.requests.put(place.id, data, stat.version);
      case "component":
        return this.#putComponent(place.componentKind, place.key, decodeComponent(data), stat.version);
      case "image-build":
        return this.images.putBuild(place.image, place.build, data);
      case "image-upload":
        return this.images.putUpload(place, data);
      case "other":
        return this.#putOwn({ path, data, version: stat.version, created: stat.ctime });
      default:
        return undefined;
    }
  }

  #remove(path: string): ViewEvent | undefined {
    const place = parsePath(path);
    switch (place.kind) {
      case "node":
        return this.nodes.remove(place.id);
      case "contender":
        return this.nodes.removeContender(place.id, place.name);
      case "request":
        return this.requests.remove(place.id);
      case "component": {
        const before = this.components.get(place.key);
        this.components.delete(place.key);
        return before && { type: "component", key: place.key, before };
      }
      case "image-pause":
        return this.images.setPaused(place.image, false);
      case "image-request":
        return this.images.setRequested(place.image, false);
      case "image-build":
        return this.images.removeBuild(place.image, place.build);
      case "image-upload":
        return this.images.removeUpload(place);
      case "other": {
        const before = this.own.get(path);
        this.own.delete(path);
        return before && { type: "own", path, before };
      }
      default:
        return undefined;
    }
  }

  #putComponent(kind: string, key: string, record: ComponentRecord, version: number): ViewEvent {
    const before = this.components.get(key);
    const after: ComponentEntry = { key, kind, record, version };
    this.components.set(key, after);
    return { type: "component", key, before, after };
  }

  #putOwn(after: OwnEntry): ViewEvent {
    const before = this.own.get(after.path);
    this.own.set(after.path, after);
    return { type: "own", path: after.path, before, after };
  }

  /**
   * An unreadable record stops nothing else (rule 6): it is logged, counted, and kept as unreadable. It enters the table of unreadable
   * records before it leaves its own table, so that it is in one of them at any moment. Fields of the last readable version fill gaps,
   * because a node never changes its provider.
   */
  #keepUnread(
    place: ParsedPath,
    { path, data, stat }: Extract<Change, { type: "put" }>,
    code: string,
    why: string,
  ): void {
    const id = path.slice(path.lastIndexOf("/") + 1);
    this.#options.counters.add("view.records_skipped", 1, { kind: place.kind, code });
    this.#options.log.warn({ path, code, error: why }, SKIPPED);
    const kind = place.kind as UnreadableEntry["kind"];
    // Of a node that was unreadable before, too: what was known of it is still true.
    const former =
      kind === "node" ? (this.nodes.byId.get(id)?.record ?? this.unreadable.nodes.get(id)?.known) : {};
    const known = kind === "node" ? { ...former, ...readableNode(data!) } : {};
    const entry = { path, kind, id, version: stat!.version, code, why, known };
    const event = this.unreadable.put(entry);
    const gone = this.#remove(path);
    this.#emit(event);
    this.#emit(gone);
  }

  /** Calls the listeners with an event, and then with each backing node and each standing that it changed. */
  #emit(event: ViewEvent | undefined): void {
    if (event === undefined) return;
    const backings = this.slots.take(event);
    for (const listener of this.#listeners) listener(event);
    for (const id of backings) {
      const changed: ViewEvent = { type: "backing", id, after: this.slots.facts(id) };
      for (const listener of this.#listeners) listener(changed);
    }
    for (const changed of this.standings.take(event, this))
      for (const listener of this.#listeners) listener(changed);
  }
}

const RECORDS: ReadonlySet<ParsedPath["kind"]> = new Set(["node", "request", "image-build", "image-upload"]);
