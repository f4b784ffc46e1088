import { jitter, messageOf, settledWithin } from "@nodeyard/runtime";
import { type CheckOp, ensurePath, type Feed, FenceLost, lineOf, type Tree } from "@nodeyard/tree";
import { contenderPrefix, type Entry, enter, holderOf, withdraw } from "@nodeyard/zookeeper";
import { Controller, type ControllerHandles } from "./controller.ts";

/** Before standing again after a failure, milliseconds. */
const RETRY_MS = 5_000;
/** A lost event delays, never loses: now and then the line is compared. */
const RESYNC_MS = 60_000;
/** How long `close` waits until our contender is deleted, milliseconds; later its session ends it. */
const LEAVE_MS = 2_000;

interface Handles extends ControllerHandles {
  readonly tree: Tree;
}

/** Where an election is held that others than Nodeyard stand for, too. */
export interface ElectionSite {
  readonly parent: string;
  /** What a contender's znode holds, for people. */
  readonly data: Uint8Array;
}

/**
 * Leadership among launchers for one name, by a session-bound contender. Followed through a feed, never polled. Losing and winning are
 * reported by `onChange`; a session that may be lost ends the leadership without a call, so ask `leading` or `check` before each
 * write.
 */
export class Election {
  readonly #context: Handles;
  readonly #parent: string;
  readonly #onChange: () => void;
  /** The contenders that the feed reported, and nothing else: it does not report the end of a contender that it never reported. */
  readonly #names = new Set<string>();
  #feed: Feed | undefined;
  /** Our contender and the session that made it; undefined: we do not stand. */
  #own: { readonly name: string; readonly epoch: number } | undefined;
  /** Our contender. All attempts use one prefix, so that a contender whose creation was not answered is recognized as ours. */
  readonly #entry: Entry;
  /** The session in which the line was last seen whole: those before us in it are known only then. */
  #syncedEpoch = -1;
  /** It stands while we are not in the line, and compares the line otherwise. */
  readonly #controller: Controller;
  #unsubscribe: () => void = () => {};
  /** What `onChange` reported last. */
  #led = false;

  /** `at`: a name of ours, or a place that is known to others. */
  constructor(context: Handles, at: string | ElectionSite, onChange: () => void) {
    this.#context = context;
    const ours = typeof at === "string";
    this.#parent = ours ? `/nodeyard/elections/${encodeURIComponent(at)}` : at.parent;
    this.#onChange = onChange;
    this.#entry = {
      parent: this.#parent,
      prefix: contenderPrefix(context.random.uuid()),
      data: ours ? new Uint8Array(0) : at.data,
      doubtful: false,
    };
    this.#controller = new Controller(context, {
      name: `election ${this.#parent}`,
      site: "coordination/election.ts",
      resyncMs: RESYNC_MS,
      reconcile: () => this.#reconcile(),
      failed: (error) => {
        context.log.debug(
          { election: this.#parent, error: messageOf(error) },
          "cannot join an election; will retry",
        );
        return jitter(context.random, RETRY_MS);
      },
    });
  }

  /** Whether this process leads now. False as soon as its session may be lost. */
  get leading(): boolean {
    const { tree, clock } = this.#context;
    const session = tree.session();
    if (
      this.#own === undefined ||
      this.#own.epoch !== session.epoch ||
      this.#syncedEpoch !== session.epoch ||
      clock.monotonic() >= session.trustedUntil
    )
      return false;
    return holderOf([...this.#names, this.#own.name]) === this.#own.name;
  }

  /** Put into a commit, it makes the commit fail when the leadership is lost. Throws FenceLost when it is not ours now. */
  check(): CheckOp {
    if (this.#own === undefined || !this.leading) throw new FenceLost(`leadership ${this.#parent}`);
    return { op: "check", path: `${this.#parent}/${this.#own.name}` };
  }

  /** Begins to stand and to follow the line. Call it once. */
  start(): void {
    const { tree } = this.#context;
    this.#feed = tree.feed(this.#parent, {
      interest: () => "name",
      onChange: (change) => {
        if (change.type === "gap") return;
        if (change.type === "synced") {
          this.#syncedEpoch = tree.session().epoch;
          return this.#tell();
        }
        const name = change.path.slice(this.#parent.length + 1);
        if (name === "") return;
        if (change.type === "put") this.#names.add(name);
        else this.#names.delete(name);
        this.#tell();
        // The contender is gone, because its session ended or somebody deleted it: we do not lead any more.
        if (change.type === "remove" && name === this.#own?.name) {
          this.#own = undefined;
          this.#controller.wake();
        }
      },
    });
    this.#feed.synced.catch(() => {});
    this.#unsubscribe = tree.onSession((session) => {
      if (session.state === "connected" && this.#own?.epoch !== session.epoch) this.#controller.wake();
    });
    this.#controller.wake();
  }

  async close(): Promise<void> {
    this.#unsubscribe();
    const ended = this.#controller.close();
    await this.#feed?.close();
    const { clock, log } = this.#context;
    // A contender that stayed behind would lead for as long as the session lives, and do nothing: it is asked for until it is gone.
    const gone = ended
      .then(() => withdraw(lineOf(this.#context.tree), { ...this.#entry, doubtful: true }, undefined, {}))
      .catch((error) =>
        log.debug(
          { election: this.#parent, error: messageOf(error) },
          "cannot delete a contender; it disappears with its session",
        ),
      );
    await settledWithin(clock, LEAVE_MS, gone);
  }

  /** Calls `onChange` when the answer of `leading` is another than last time. */
  #tell(): void {
    const leads = this.leading;
    if (leads === this.#led) return;
    this.#led = leads;
    this.#onChange();
  }

  async #reconcile(): Promise<undefined> {
    const { tree } = this.#context;
    if (this.#own?.epoch === tree.session().epoch) {
      // Not awaited: to stand again after a lost session does not wait for a comparison. It rejects only when the feed is closed.
      this.#feed?.resync().catch(() => {});
      return;
    }
    await ensurePath(tree, this.#parent);
    const place = await enter(lineOf(tree), this.#entry, {});
    // A call that is made between two sessions runs in the second one; the stat shows to which session the contender belongs.
    const { id, epoch } = tree.session();
    if (place.owner !== id) throw new FenceLost(`contender ${place.path}`);
    const name = place.path.slice(place.path.lastIndexOf("/") + 1);
    // A contender before ours whose event was missed would never be reported, and both would lead.
    await this.#feed?.resync();
    if (!this.#names.has(name)) throw new FenceLost(`contender ${place.path}`);
    this.#own = { name, epoch };
    this.#tell();
  }
}
