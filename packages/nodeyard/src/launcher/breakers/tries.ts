import { type Tree, TreeError } from "@nodeyard/tree";
import { decodeProbe, encodeProbe, probePath } from "../../operations/index.ts";
import { type Offering, offeringKey } from "../../scheduler/index.ts";
import type { Log } from "../../telemetry/index.ts";
import type { View } from "../../view/index.ts";

/** The right to launch of an offering, for one request. */
export interface LaunchPermit {
  readonly offering: Offering;
  readonly request: string;
  /** Steady milliseconds. */
  readonly began: number;
}

export interface TryHandles {
  readonly tree: Tree;
  readonly view: View;
  readonly log: Log;
}

/** Who tries an offering whose breaker is open: a znode beneath the breaker's, bound to the session of the launcher that does it. */
export class Tries {
  readonly #handles: TryHandles;
  /** Launches under way here, whether their breakers are open or not. */
  readonly #permits = new Set<LaunchPermit>();

  constructor(handles: TryHandles) {
    this.#handles = handles;
  }

  take(permit: LaunchPermit): void {
    this.#permits.add(permit);
  }

  /** The request that tries, of whatever launcher. */
  of(key: string): string | undefined {
    const entry = this.#handles.view.own.get(probePath(key));
    return entry && decodeProbe(entry.data);
  }

  /** "closed": the breaker has gone meanwhile. */
  async begin({ offering, request }: LaunchPermit): Promise<"begun" | "closed" | "taken"> {
    const key = offeringKey(offering);
    try {
      await this.#handles.tree.create(probePath(key), encodeProbe(request), { ephemeral: true });
      return "begun";
    } catch (error) {
      if (!(error instanceof TreeError)) throw error;
      if (error.code === "tree.no_node") return "closed";
      return this.of(key) === request ? "begun" : "taken";
    }
  }

  /**
   * The launch is over, however it ended: another may try. Only what is of our session goes, since another launcher may try for the same
   * request by now. A session that ends between the look and the deletion would let that go wrong: the version of an ephemeral znode
   * tells no owner, and two tries at once do no harm.
   */
  async end(permit: LaunchPermit): Promise<void> {
    const { offering, request } = permit;
    this.#permits.delete(permit);
    const key = offeringKey(offering);
    if (this.of(key) === request && (await this.#isOurs(key)))
      await quiet(this.#handles.tree.delete(probePath(key)));
  }

  async #isOurs(key: string): Promise<boolean> {
    const { tree } = this.#handles;
    const stat = await quiet(tree.stat(probePath(key)));
    return stat !== undefined && stat.ephemeralOwner === tree.session().id;
  }

  /**
   * Ends a try of ours that no launch is at: an answer was lost when it began or ended. It would stand as long as our session, and
   * everybody would wait for what it finds out.
   */
  async clear(key: string): Promise<void> {
    const { tree, log } = this.#handles;
    const request = this.of(key);
    for (const permit of this.#permits)
      if (permit.request === request && offeringKey(permit.offering) === key) return;
    if (!(await this.#isOurs(key))) return;
    log.info({ offering: key, request }, "removed the trial launch of an offering that nobody is making");
    await quiet(tree.delete(probePath(key)));
  }
}

/** What does not succeed now is done by the next sweep, or by the end of the session. */
async function quiet<T>(call: Promise<T>): Promise<T | undefined> {
  try {
    return await call;
  } catch (error) {
    if (!(error instanceof TreeError)) throw error;
    return undefined;
  }
}
