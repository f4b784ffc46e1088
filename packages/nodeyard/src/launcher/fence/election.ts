import { jitter, messageOf, type Timer } from "@nodeyard/runtime";
import { type CheckOp, type Feed, TreeError } from "@nodeyard/tree";
import { contenderPrefix, holderOf } from "@nodeyard/zookeeper";
import type { Context } from "../context.ts";
import { FenceLost } from "./fence.ts";

const RETRY_MS = 5_000;

/** Leadership among launchers for one name, by a session-bound contender. Followed through a feed, never polled. */
export class Election {
  readonly #context: Pick<Context, "tree" | "clock" | "random" | "log">;
  readonly #parent: string;
  readonly #onChange: () => void;
  readonly #names = new Set<string>();
  #feed: Feed | undefined;
  #own: { readonly name: string; readonly epoch: number } | undefined;
  /** Name of our contender before its number: after a lost reply it tells ours among the others. */
  #prefix: { readonly text: string; readonly epoch: number } | undefined;
  /** The session in which the line was last seen whole: those before us in it are known only then. */
  #syncedEpoch = -1;
  #standing = false;
  #closed = false;
  #timer: Timer | undefined;
  #unsubscribe: () => void = () => {};
  #led = false;

  constructor(
    context: Pick<Context, "tree" | "clock" | "random" | "log">,
    name: string,
    onChange: () => void,
  ) {
    this.#context = context;
    this.#parent = `/nodeyard/elections/${encodeURIComponent(name)}`;
    this.#onChange = onChange;
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
    return holderOf([...this.#names]) === this.#own.name;
  }

  /** Put into a commit, it makes the commit fail when the leadership is lost. Throws FenceLost when it is not ours now. */
  check(): CheckOp {
    if (this.#own === undefined || !this.leading) throw new FenceLost(`leadership ${this.#parent}`);
    return { op: "check", path: `${this.#parent}/${this.#own.name}` };
  }

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
      },
    });
    this.#feed.synced.catch(() => {});
    this.#unsubscribe = tree.onSession((session) => {
      if (session.state === "connected" && this.#own?.epoch !== session.epoch) void this.#stand();
    });
    void this.#stand();
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#unsubscribe();
    this.#timer?.cancel();
    await this.#feed?.close();
    if (this.#own?.epoch === this.#context.tree.session().epoch) {
      await this.#context.tree
        .delete(`${this.#parent}/${this.#own.name}`, { deadlineMs: 2_000 })
        .catch(() => {});
    }
  }

  #tell(): void {
    const leads = this.leading;
    if (leads === this.#led) return;
    this.#led = leads;
    this.#onChange();
  }

  async #stand(): Promise<void> {
    if (this.#standing || this.#closed) return;
    this.#standing = true;
    const { tree, random, clock, log } = this.#context;
    const { epoch } = tree.session();
    try {
      for (const path of ["/nodeyard", "/nodeyard/elections", this.#parent])
        await tree.create(path).catch(ignoreExisting);
      if (this.#prefix?.epoch !== epoch) this.#prefix = { text: contenderPrefix(random.uuid()), epoch };
      const { text } = this.#prefix;
      const mine = (await tree.children(this.#parent)).find((name) => name.startsWith(text));
      const made =
        mine ??
        (await tree.create(`${this.#parent}/${text}`, undefined, { ephemeral: true, sequential: true })).path;
      this.#own = { name: made.slice(made.lastIndexOf("/") + 1), epoch };
      this.#names.add(this.#own.name);
      this.#tell();
    } catch (error) {
      log.debug(
        { election: this.#parent, error: messageOf(error) },
        "could not stand for election; tries again",
      );
      if (!this.#closed)
        this.#timer = clock.setTimer(jitter(random, RETRY_MS), () => void this.#stand(), {
          background: true,
        });
    } finally {
      this.#standing = false;
    }
  }
}

function ignoreExisting(error: unknown): void {
  if (!(error instanceof TreeError) || error.code !== "tree.node_exists") throw error;
}
