import {
  encodeStandings,
  STANDINGS,
  type StandingFact,
  type StandingState,
  standingFact,
  standingPath,
} from "@nodeyard/model";
import { messageOf } from "@nodeyard/runtime";
import { type Tree, TreeError, treeNow } from "@nodeyard/tree";
import { Controller, type ControllerHandles } from "./controller.ts";
import { withRoot } from "./roots.ts";

/** Changes that come together are reported together, milliseconds. */
const GATHER_MS = 250;
/** A fact whose change woke nobody is reported this late at most, milliseconds. */
const RESYNC_MS = 60_000;
/** Bytes for which a reporter rests a millisecond: a large report is written less often, so that all of them cost the tree little. */
const BYTES_PER_MS = 32;

/** A member that runs, and does not do all of its work: why. Nothing where it does. */
export function notReady(
  kind: "launcher" | "builder",
  hostname: string,
  cause: string | undefined,
): readonly StandingFact[] {
  return cause === undefined ? [] : [standingFact(kind, hostname, "degraded", "member.not-ready", { cause })];
}

/**
 * Reports how the things that this member looks after stand, in an ephemeral record that every process with a view follows: each change
 * within a second, and nothing while nothing changes.
 */
export class StandingReporter {
  readonly #handles: ControllerHandles & { readonly tree: Tree };
  readonly #member: { readonly name: () => string; readonly hostname: string };
  readonly #collect: () => readonly StandingFact[];
  readonly #controller: Controller;
  /** Since when each thing has its state, where the fact itself does not tell. */
  #since: ReadonlyMap<string, { readonly state: StandingState; readonly since: number }> = new Map();
  #written: { readonly path: string; readonly data: Uint8Array } | undefined;
  /** Monotonic milliseconds. */
  #notBefore = 0;

  /** `member`: its name below `/nodeyard/members` now. `collect`: all facts, from memory. */
  constructor(
    handles: ControllerHandles & { readonly tree: Tree },
    member: { readonly name: () => string; readonly hostname: string },
    collect: () => readonly StandingFact[],
  ) {
    this.#handles = handles;
    this.#member = member;
    this.#collect = collect;
    this.#controller = new Controller(handles, {
      name: "report of standings",
      site: "coordination/standing-reporter.ts",
      resyncMs: RESYNC_MS,
      reconcile: () => this.#report(),
      failed: (error) => {
        handles.log.debug({ error: messageOf(error) }, "cannot report how things stand; will retry");
        this.#written = undefined;
        return 5_000;
      },
    });
  }

  start(): void {
    this.#controller.start();
    this.wake();
  }

  /** Something may have changed. */
  wake(): void {
    const rest = this.#notBefore - this.#handles.clock.monotonic();
    this.#controller.wake(Math.max(GATHER_MS, rest));
  }

  /** Takes the report back: this member looks after nothing any more. */
  async close(): Promise<void> {
    await this.#controller.close();
    if (this.#written === undefined) return;
    await this.#handles.tree.delete(this.#written.path).catch(() => {});
  }

  /** Returns when to look again, milliseconds: the moment of the next try has come then. */
  async #report(): Promise<number> {
    const { tree, clock } = this.#handles;
    const path = standingPath(this.#member.name());
    const now = Math.round(treeNow(this.#handles));
    const facts = this.#dated(this.#collect(), now);
    const data = encodeStandings({ hostname: this.#member.hostname, facts, leftOut: 0 });
    const written = this.#written;
    const rest = data.length / BYTES_PER_MS;
    const again = Math.max(GATHER_MS, rest, Math.min(...facts.flatMap(({ nextTry }) => nextTry ?? [])) - now);
    if (written?.path === path && Buffer.compare(written.data, data) === 0) return again;
    this.#notBefore = clock.monotonic() + rest;
    // The name changes with the session, with which the former record went.
    if (written?.path === path) await tree.set(path, data);
    else
      await withRoot(tree, STANDINGS, () => tree.create(path, data, { ephemeral: true })).catch((error) => {
        if (!(error instanceof TreeError && error.code === "tree.node_exists")) throw error;
        return tree.set(path, data);
      });
    this.#written = { path, data };
    return again;
  }

  /** The facts with the times of their states. A try that is due already is under way, or waits for its turn: no time is known. */
  #dated(facts: readonly StandingFact[], now: number): readonly StandingFact[] {
    const since = new Map<string, { state: StandingState; since: number }>();
    const dated = facts.map((fact) => {
      const { kind, name, provider = "", state, nextTry } = fact;
      const key = JSON.stringify([kind, name, provider]);
      const before = this.#since.get(key);
      const own = fact.since ?? (before?.state === state ? before.since : now);
      since.set(key, { state, since: own });
      return { ...fact, since: own, nextTry: nextTry !== null && nextTry > now ? nextTry : null };
    });
    this.#since = since;
    return dated;
  }
}
