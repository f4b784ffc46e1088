import type { Figure, Scenario } from "../lib/scenario.ts";
import { median, round } from "../lib/statistics.ts";
import { Installation } from "../planning/installation.ts";

const SMALL = { requests: 200, nodes: 100 };
const LARGE = { requests: 20_000, nodes: 10_000 };
/** Offerings of each label, on a third installation that is as large. */
const OFFERINGS = 10;
/** Events of each kind in one batch, on one of the two. */
const TURN = 20;
const TURNS_PER_ROUND = 20;
/** The compiler is still at work on the code of both. */
const WARM_UP = 10;

type Kind = "request new" | "request gone" | "node freed" | "node ready" | "fulfilled" | "component change";

export const planning: Scenario = {
  name: "planning",
  about:
    "the scheduler alone: cost of an event with 20,000 requests and 10,000 nodes, with 200 and 100, and with ten offerings a label",
  *run({ rounds }): Generator<Figure> {
    const small = new Measured(SMALL);
    const large = new Measured(LARGE);
    const offered = new Measured(LARGE, OFFERINGS);
    for (let turn = -WARM_UP; turn < rounds * TURNS_PER_ROUND; turn++) {
      for (const one of turn % 2 === 0 ? [small, large, offered] : [offered, large, small])
        one.turn(turn >= 0);
    }
    for (const kind of small.kinds()) {
      const [few, many, ten] = [small, large, offered].map((one) => one.microseconds(kind)) as [
        number,
        number,
        number,
      ];
      yield {
        scenario: "planning",
        event: kind,
        ...LARGE,
        microseconds: round(many),
        smallMicroseconds: round(few),
        ratio: round(many / few),
        tenOfferingsMicroseconds: round(ten),
        tenOfferingsRatio: round(ten / many),
      };
    }
  },
};

/** Times of single events on one installation: an event that the machine interrupts is one of many, and the median ignores it. */
class Measured {
  readonly #installation: Installation;
  readonly #times = new Map<Kind, number[]>();

  constructor(size: { readonly requests: number; readonly nodes: number }, offerings = 0) {
    this.#installation = new Installation(size.requests, size.nodes, offerings);
    const { requests, nodes } = this.#installation.size;
    if (requests !== size.requests || nodes !== size.nodes)
      throw new Error(`the scheduler holds ${requests} requests and ${nodes} nodes`);
  }

  /** Leaves the number of requests and nodes unchanged. */
  turn(counts: boolean): void {
    const time = <T>(kind: Kind, work: () => T): T => {
      const started = performance.now();
      const result = work();
      if (counts) this.#note(kind, performance.now() - started);
      return result;
    };
    const it = this.#installation;
    for (let event = 0; event < TURN; event++) time("request new", () => it.newRequest());
    for (let event = 0; event < TURN; event++) time("request gone", () => it.requestGone());
    const served = Array.from({ length: TURN }, () => time("node freed", () => it.nodeFreed()));
    for (const one of served) time("node ready", () => it.nodeReady(one));
    for (const one of served) time("fulfilled", () => it.fulfilled(one));
    for (let event = 0; event < TURN; event++) time("component change", () => it.componentChange());
    for (let event = 0; event < TURN; event++) it.newRequest();
  }

  kinds(): readonly Kind[] {
    return [...this.#times.keys()];
  }

  microseconds(kind: Kind): number {
    return median(this.#times.get(kind) ?? []) * 1_000;
  }

  #note(kind: Kind, ms: number): void {
    const times = this.#times.get(kind) ?? [];
    this.#times.set(kind, times);
    times.push(ms);
  }
}
