import type { AppliedWrite } from "@nodeyard/tree";
import { Broken } from "./broken.ts";
import type { Change, Moment, Replay } from "./replay.ts";
import { isLauncher, type Rule, stateOf } from "./rule.ts";
import { LATE_MS, passed, saidAt } from "./time.ts";

interface Held {
  /** Undefined: until somebody ends it. */
  readonly forMs: number | undefined;
  readonly since: Moment;
}

/** Promise to the operator: a launcher deletes a held node when its hold expires, neither before nor long after. */
export class HoldLengths implements Rule {
  readonly #held = new Map<string, Held>();
  #calmSince = Number.POSITIVE_INFINITY;

  onCalm({ now }: Replay): void {
    this.#calmSince = now;
  }

  onNode({ id, before, after, write }: Change, replay: Replay): void {
    const held = this.#held.get(id);
    // A client that lost the answer writes the same once more: the hold began with the first write.
    const isRepeated = stateOf(before) === "hold" && before?.data.state_time === after?.data.state_time;
    if (stateOf(after) === "hold" && !isLauncher(write.client)) {
      const seconds = (after!.data.hold_expiration as number | null) ?? 0;
      this.#held.set(id, {
        forMs: seconds > 0 ? seconds * 1000 : undefined,
        since:
          isRepeated && held ? held.since : saidAt((after!.data.state_time as number) * 1000, write, replay),
      });
    } else if (held !== undefined && stateOf(after) !== "hold") {
      this.#held.delete(id);
      if (!isLauncher(write.client)) return;
      const ms = passed(held.since, write, replay);
      const off = replay.believed.get(write.client) ?? 0;
      if (held.forMs === undefined || Math.ceil(ms) + off < held.forMs)
        throw new Broken(
          "a hold lasts its time",
          write,
          `${id}: ended after ${ms} ms of ${held.forMs ?? "any"}`,
        );
    }
  }

  onWrite(write: AppliedWrite, { now }: Replay): void {
    for (const [id, { since, forMs = Number.POSITIVE_INFINITY }] of this.#held) {
      const late = now - Math.max(since.steady + forMs, this.#calmSince);
      if (late > LATE_MS)
        throw new Broken("a hold ends when its time is over", write, `${id}: ${late} ms late`);
    }
  }
}
