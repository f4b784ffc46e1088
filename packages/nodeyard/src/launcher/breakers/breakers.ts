import { type Clock, messageOf, NodeyardError, type Random } from "@nodeyard/runtime";
import { ensurePath, type Op, type Tree, TreeError } from "@nodeyard/tree";
import {
  BREAKERS,
  type Breaker,
  breakerPath,
  decodeBreaker,
  encodeBreaker,
  probePath,
} from "../../operations/index.ts";
import { mayTry, type Offering, type OfferingFact, offeringKey } from "../../scheduler/index.ts";
import type { Counters, Journal, Log } from "../../telemetry/index.ts";
import type { OwnEntry, View, ViewEvent } from "../../view/index.ts";
import type { AgeClock } from "../age-clock.ts";
import {
  type BreakerRule,
  defaultRule,
  type Failure,
  furthest,
  isHopeless,
  noFailures,
  onFailure,
  opensAt,
  type Tally,
} from "./rule.ts";
import { type LaunchPermit, Tries } from "./tries.ts";

/** An offering may not be launched now; the request is planned again. */
export class OfferingClosed extends NodeyardError {
  constructor({ provider, az, type }: Offering, why: string) {
    const place = az === null ? provider : `${provider} ${az}`;
    super("launcher.offering_closed", `no launches of ${type} in ${place} for now: ${why}`);
  }
}

export interface BreakerHandles {
  readonly clock: Clock;
  readonly tree: Tree;
  readonly view: View;
  readonly random: Random;
  readonly log: Log;
  readonly journal: Journal;
  readonly counters: Counters;
  readonly ages: AgeClock;
}

/** A breaker whose times are moments of the monotonic clock: it opens and drains by that, whatever becomes of tree time. */
type SteadyBreaker = Breaker;

interface Found {
  readonly breaker: SteadyBreaker;
  readonly version: number;
}

/** Tries to write against others who write the same record, at most. */
const WRITES = 3;
/** Offerings whose failures are remembered, at most. */
const REMEMBERED = 10_000;
/** An open breaker that nobody has tried for so long is of something that is no longer configured, milliseconds. */
const FORGOTTEN_MS = 86_400_000;

/**
 * Breakers that all launchers share: one that sees an offering fail keeps the others from trying. A record is written when
 * a breaker opens and deleted when it closes; who tries what is open stands beneath it, bound to its session.
 */
export class Breakers {
  readonly #handles: BreakerHandles;
  readonly #rule: () => BreakerRule;
  readonly #tell: (key: string, fact: OfferingFact | undefined) => void;
  readonly #tallies = new Map<string, Tally>();
  readonly #tries: Tries;

  constructor(
    handles: BreakerHandles,
    tell: (key: string, fact: OfferingFact | undefined) => void,
    rule: () => BreakerRule = () => defaultRule,
  ) {
    this.#handles = handles;
    this.#tries = new Tries(handles);
    this.#tell = tell;
    this.#rule = rule;
  }

  /** What the view knew before anyone listened. */
  seed(): void {
    for (const path of this.#handles.view.own.keys()) this.#changed(path);
  }

  onEvent(event: ViewEvent): void {
    if (event.type === "own") this.#changed(event.path);
  }

  /** To be awaited before each launch. Rejects with OfferingClosed. */
  async enter(offering: Offering, request: string): Promise<LaunchPermit> {
    const permit = { offering, request, began: this.#handles.clock.monotonic() };
    this.#tries.take(permit);
    try {
      await this.#admit(permit);
      return permit;
    } catch (error) {
      await this.leave(permit);
      throw error;
    }
  }

  async #admit(permit: LaunchPermit): Promise<void> {
    const { offering, request, began } = permit;
    const key = offeringKey(offering);
    const found = this.#find(key);
    if (found === undefined || this.#tries.of(key) === request) return;
    const fact = this.#factOf(key, found);
    if (!mayTry(fact, began)) throw new OfferingClosed(offering, fact.error);
    if ((await this.#tries.begin(permit)) === "taken")
      throw new OfferingClosed(offering, "another request is testing it");
  }

  async failed(permit: LaunchPermit, failure: Omit<Failure, "probe">): Promise<void> {
    const { offering, request } = permit;
    const key = offeringKey(offering);
    const { random, clock } = this.#handles;
    const tally = this.#tallies.get(key) ?? noFailures;
    await this.#write(key, (found) => {
      const probe = this.#tries.of(key) === request;
      const outcome = onFailure(
        offering,
        found?.breaker,
        tally,
        { ...failure, probe },
        clock.monotonic(),
        this.#rule(),
        random,
      );
      this.#remember(key, outcome.tally);
      if (outcome.breaker === undefined) return undefined;
      const breaker = this.#toStore(outcome.breaker);
      const data = encodeBreaker(breaker);
      const path = breakerPath(key);
      const ops: Op[] =
        found === undefined
          ? [{ op: "create", path, data }]
          : [
              { op: "set", path, data, version: found.version },
              ...(probe ? [{ op: "delete", path: probePath(key) } as const] : []),
            ];
      return { ops, done: () => this.#opened(breaker, request) };
    });
    // A try that opened nothing (its quota was used up) leaves the place to the next.
    await this.leave(permit);
  }

  async succeeded(permit: LaunchPermit): Promise<void> {
    const { offering, request, began } = permit;
    const key = offeringKey(offering);
    const tally = this.#tallies.get(key);
    if (tally !== undefined) this.#remember(key, { ...tally, row: 0 });
    await this.#write(key, (found) => {
      // Only what began after it opened says that the offering is back.
      if (found === undefined || began < found.breaker.since) return undefined;
      const probe = this.#handles.view.own.has(probePath(key));
      const ops: Op[] = [
        ...(probe ? [{ op: "delete", path: probePath(key) } as const] : []),
        { op: "delete", path: breakerPath(key), version: found.version },
      ];
      return { ops, done: () => this.#closed(this.#toStore(found.breaker), request) };
    });
    // A breaker that could not be written is closed by the next that tries.
    await this.leave(permit);
  }

  /** The try ended without a verdict on the offering: another may try. */
  leave(permit: LaunchPermit): Promise<void> {
    return this.#tries.end(permit);
  }

  /** Forgets what nobody asks for any more, and ends what holds others up and is over. */
  async sweep(): Promise<void> {
    const { view, tree, clock } = this.#handles;
    for (const [path, entry] of view.own) {
      const key = keyOf(path);
      if (key === undefined) continue;
      if (path === probePath(key)) await this.#tries.clear(key);
      if (path !== breakerPath(key)) continue;
      const breaker = this.#decode(key, entry);
      if (breaker === undefined || clock.monotonic() - breaker.until < FORGOTTEN_MS) continue;
      await tree.delete(path, { version: entry.version }).catch((error: unknown) => {
        if (!(error instanceof TreeError)) throw error;
      });
    }
  }

  #changed(path: string): void {
    const key = keyOf(path);
    if (key === undefined) return;
    const found = this.#find(key);
    if (found !== undefined) return this.#tell(key, this.#factOf(key, found));
    for (const field of ["since", "until", "spent"]) this.#handles.ages.forget(nameOf(key, field));
    this.#tell(key, undefined);
  }

  #factOf(key: string, { breaker }: Found): OfferingFact {
    const { why, failures, kind, error } = breaker;
    const until = opensAt(breaker, this.#rule());
    const since = this.#handles.ages.treeTimeOf(breaker.since);
    const prober = this.#tries.of(key) ?? null;
    const hopeless = isHopeless(breaker, this.#rule());
    return { why, until, prober, hopeless, since, failures, kind, error };
  }

  #find(key: string): Found | undefined {
    const entry = this.#handles.view.own.get(breakerPath(key));
    const breaker = entry && this.#decode(key, entry);
    return entry && breaker && { breaker, version: entry.version };
  }

  #decode(key: string, entry: OwnEntry): SteadyBreaker | undefined {
    try {
      const breaker = decodeBreaker(key, entry.data);
      const { level, at } = breaker.spent;
      const read = (field: string, instant: number, aheadMs: number) =>
        this.#handles.ages.stored(nameOf(key, field), instant, aheadMs);
      return {
        ...breaker,
        since: read("since", breaker.since, 0),
        until: read("until", breaker.until, furthest(breaker, this.#rule())),
        spent: { level, at: read("spent", at, 0) },
      };
    } catch (error) {
      const code = (error as { code?: string }).code ?? "unknown";
      this.#handles.counters.add("view.records_skipped", 1, { kind: "breaker", code });
      return undefined;
    }
  }

  #toStore(breaker: SteadyBreaker): Breaker {
    const { ages } = this.#handles;
    const { since, until, spent } = breaker;
    const at = ages.treeTimeOf(spent.at);
    return {
      ...breaker,
      since: ages.treeTimeOf(since),
      until: ages.treeTimeOf(until),
      spent: { ...spent, at },
    };
  }

  /** Writes what `plan` makes of the record; decides anew when somebody else was quicker. A breaker that cannot be written is said, no more. */
  async #write(
    key: string,
    plan: (
      found: Found | undefined,
    ) => { readonly ops: readonly Op[]; readonly done: () => void } | undefined,
  ): Promise<void> {
    const { tree, log } = this.#handles;
    for (let attempt = 1; ; attempt++) {
      const planned = plan(this.#find(key));
      if (planned === undefined) return;
      try {
        // What stood in the way of the try before: another's write, or a folder that was missing.
        if (attempt > 1) {
          await ensurePath(tree, BREAKERS);
          await tree.sync(BREAKERS);
        }
        await tree.commit(planned.ops);
        return planned.done();
      } catch (error) {
        if (!(error instanceof TreeError)) throw error;
        if (attempt >= WRITES) {
          log.warn({ offering: key, error: messageOf(error) }, "cannot write a breaker");
          return;
        }
        if (error.outcome === "unknown") return;
      }
    }
  }

  #remember(key: string, tally: Tally): void {
    if (this.#tallies.size >= REMEMBERED) this.#tallies.clear();
    this.#tallies.set(key, tally);
  }

  #opened(breaker: Breaker, request: string): void {
    const { log, journal, counters } = this.#handles;
    const { provider, az, type, why, kind, error, failures, opens, until } = breaker;
    const facts = { provider, az, type, why, kind, error, failures, opens, until };
    log.warn(facts, "opened a breaker: no launches of an offering for a while");
    journal.write({ event: "offering.closed", request, facts });
    counters.add("launcher.breakers", 1, { provider, change: "opened" });
  }

  #closed({ provider, az, type, failures, since }: Breaker, request: string): void {
    const { log, journal, counters } = this.#handles;
    const facts = { provider, az, type, failures, since };
    log.info(facts, "closed a breaker: an offering works again");
    journal.write({ event: "offering.open", request, facts });
    counters.add("launcher.breakers", 1, { provider, change: "closed" });
  }
}

/** What a time of a breaker's record is known by. */
function nameOf(key: string, field: string): string {
  return `breaker ${key} ${field}`;
}

/** The offering of a path under BREAKERS. */
function keyOf(path: string): string | undefined {
  if (!path.startsWith(`${BREAKERS}/`)) return undefined;
  return path.slice(BREAKERS.length + 1).split("/")[0];
}
