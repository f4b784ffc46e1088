import {
  decodeProbe,
  encodeProbe,
  type FailureRecord,
  failureKey,
  failurePath,
  labelKey,
  type Offering,
  offeringKey,
  probePath,
  subjectOf,
} from "@nodeyard/model";
import {
  type Failure,
  type FailureRule,
  type Failures,
  levelOf,
  makeGood,
  newTally,
  onFailures,
  type Tally,
  together,
} from "@nodeyard/scheduler";
import { TreeError } from "@nodeyard/tree";
import type { NodeEntry, ViewEvent } from "@nodeyard/view";
import { FailureStore } from "./failure-store.ts";
import type { Handles } from "./handles.ts";

/** Permission of the scheduler for one launch. It must be ended by one of `failed`, `succeeded` and `leave`. */
export interface Permit {
  readonly offering: Offering;
  /** Null: it costs no machine, and does not count for its label. */
  readonly label: string | null;
  /** Id of the request that launches. Where the launch is the test of a closed offering, its probe names this request. */
  readonly request: string;
  /** Steady milliseconds. A success opens a closed offering only if it began after the closing. */
  readonly began: number;
}

type FailureHandles = Omit<Handles, "live">;

/** What this process knows of one offering or label. */
interface Entry {
  /** The failures that this process counted; `together` combines them with the shared record. */
  own: Tally;
  /** How often a launch succeeded. */
  successes: number;
  /** How many of them made good a failure of the offering's budget. */
  madeGood: number;
  /** The last record whose failures `own` has all, as it stands in the tree: what was made good since, it does not say. */
  included: Uint8Array | undefined;
  /** Failures that are not counted yet. `#count` takes all of them at once, so that failures of one moment share a write. */
  failed: { readonly failure: Omit<Failure, "probe">; readonly request: string; readonly again: boolean }[];
  /**
   * Resolves when the failures so far are counted. A chain: writes of one key follow each other, because each is based on the result
   * of the one before.
   */
  counted: Promise<void>;
}

/** Milliseconds after which a record without launches is deleted: the label or offering is no longer configured. */
const FORGOTTEN_MS = 86_400_000;

/**
 * The failure records that all launchers share: one for each closed offering, and one for each label whose launches all fail
 * (docs/design/breakers.md). This class decides nothing. It writes the result of `onFailures` (FailureStore), deletes a record when a
 * launch succeeds, and passes all records on to the scheduler.
 */
export class FailureRecords {
  readonly #handles: FailureHandles;
  readonly #store: FailureStore;
  /** Called with every change of a key; undefined: it has no failures that count, so its gate is open. */
  readonly #report: (key: string, known: Failures | undefined) => void;
  /** Asked at each use, so that a new `max-failed-launches-per-hour` holds at once, for gates that are closed, too. */
  readonly #rule: () => FailureRule;
  readonly #entries = new Map<string, Entry>();
  /** Launches under way here. */
  readonly #permits = new Set<Permit>();

  constructor(
    handles: FailureHandles,
    report: (key: string, known: Failures | undefined) => void,
    rule: () => FailureRule,
  ) {
    this.#handles = handles;
    this.#report = report;
    this.#rule = rule;
    this.#store = new FailureStore(handles, rule);
    handles.view.follow((event) => this.#onEvent(event));
  }

  /**
   * Records of every launcher change gates: the gate of an offering is the same in all of them. A node that comes up for the first time, in any
   * launcher and of any provider, shows that launching its labels works.
   */
  #onEvent(event: ViewEvent): void {
    if (event.type === "own")
      this.#onOwn(event.path, event.after === undefined ? event.before?.data : undefined);
    else if (event.type === "node" && isUp(event.after) && !wasUp(event.before))
      for (const label of event.after?.record.type ?? []) this.#worked(labelKey(label));
  }

  /** Passes the failures that this process counted for a label on to the scheduler, which decides about the next launch. */
  know(label: string): void {
    const key = labelKey(label);
    if (this.#entries.has(key)) return;
    this.#entryOf(key);
    this.#publish(key);
  }

  /** From here on `sweep` leaves the permit's label, offering and probe alone, until one of the three endings is called. */
  begin(permit: Permit): void {
    this.#permits.add(permit);
  }

  /**
   * Claims the one test launch of a closed offering; await it before the launch. False: another request tests it, or the tree did not
   * answer; a probe that was made all the same is removed by the sweep.
   */
  async try({ offering, request }: Permit): Promise<boolean> {
    const key = offeringKey(offering);
    try {
      await this.#handles.tree.create(probePath(key), encodeProbe(request), { ephemeral: true });
      return true;
    } catch (error) {
      if (!(error instanceof TreeError)) throw error;
      // Without a record the gate has been opened by another launcher.
      return error.code === "tree.no_node" || this.#prober(key) === request;
    }
  }

  /**
   * Await it before the node's record shows the failure: other launchers then find the failure record in the tree. Never rejects for a
   * tree that refuses or does not answer: that is logged, and the launch goes on to its end. `again`: another attempt of the same launch
   * follows, so that a test of a closed offering is not over.
   */
  async failed(permit: Permit, failure: Omit<Failure, "probe">, again: boolean): Promise<void> {
    const { request } = permit;
    // A refusal for quota says nothing of the offering or of the label; the scheduler closes the provider's own gate for it.
    const keys = failure.kind === "quota" ? [] : keysOf(permit);
    await Promise.all(
      keys.map((key) => {
        const entry = this.#entryOf(key);
        entry.failed.push({ failure, request, again });
        entry.counted = entry.counted.then(() => this.#count(key, entry));
        return entry.counted;
      }),
    );
    // A failure for quota closes no offering, so the next request may test it.
    await this.leave(permit);
  }

  /** A launch succeeded: deletes the failure records that it disproves. */
  async succeeded(permit: Permit): Promise<void> {
    const { began, request } = permit;
    this.#makeGood(offeringKey(permit.offering));
    for (const key of keysOf(permit)) {
      this.#worked(key);
      await this.#store.write(key, (found) => {
        // A launch that began before the offering closed does not show that it works again.
        if (found === undefined || (found.pause !== undefined && began < found.since)) return undefined;
        const probe = this.#prober(key) !== undefined;
        return { record: undefined, probe, done: () => this.#opened(key, found, request) };
      });
    }
    // If the record could not be deleted, the next test opens the offering.
    await this.leave(permit);
  }

  /**
   * The launch is over, and another request may test the offering. Only a probe of our own session is deleted, because another launcher may
   * test for the same request by now. If our session ends between the read and the deletion, the probe of that launcher is deleted: the
   * version of an ephemeral znode does not show its owner. Two tests at once do no harm.
   */
  async leave(permit: Permit): Promise<void> {
    this.#permits.delete(permit);
    const key = offeringKey(permit.offering);
    if (this.#prober(key) === permit.request && (await this.#isOurs(key)))
      await quiet(this.#handles.tree.delete(probePath(key)));
  }

  /** Forgets labels and offerings that are not launched any more, and removes probes whose launch has ended. */
  async sweep(): Promise<void> {
    const { view, tree, clock } = this.#handles;
    const now = clock.monotonic();
    for (const [path, { version }] of view.own) {
      const key = failureKey(path);
      if (key === undefined) continue;
      if (path === probePath(key)) await this.#clear(key);
      const record = path === failurePath(key) ? this.#store.seen(key)?.record : undefined;
      if (record !== undefined && now - (record.pause?.until ?? record.spent.at) >= FORGOTTEN_MS)
        await quiet(tree.delete(path, { version }));
    }
    // An entry goes when nothing of it counts any more: no launch runs, and its failures have drained from the budget.
    const busy = new Set([...this.#permits].flatMap(keysOf));
    for (const [key, { own, failed }] of this.#entries) {
      if (busy.has(key) || failed.length > 0 || levelOf(own, now, this.#rule()) > 0) continue;
      this.#entries.delete(key);
      this.#publish(key);
    }
  }

  #entryOf(key: string): Entry {
    const found = this.#entries.get(key);
    if (found !== undefined) return found;
    const subject = subjectOf(key);
    const own = newTally(subject?.scope === "label" && this.#hasMachine(subject.label));
    const entry = {
      own,
      successes: 0,
      madeGood: 0,
      included: undefined,
      failed: [],
      counted: Promise.resolve(),
    };
    this.#entries.set(key, entry);
    return entry;
  }

  /** Whether a machine of the label exists. Then launching works, although this process has just started and has seen no success. */
  #hasMachine(label: string): boolean {
    const { nodes } = this.#handles.view;
    for (const id of nodes.byLabel.get(label)) if (isUp(nodes.byId.get(id))) return true;
    return false;
  }

  /** A launch succeeded, here or elsewhere. */
  #worked(key: string): void {
    const entry = this.#entries.get(key);
    // Nothing was counted for the key in this process, so a success changes nothing.
    if (entry === undefined) return;
    entry.successes++;
    const isNews = entry.own.row > 0 || !entry.own.worked;
    entry.own = { ...entry.own, worked: true, row: 0 };
    if (isNews) this.#publish(key);
  }

  /** A launch succeeded here: one failure of its offering's hourly budget is made good. */
  #makeGood(key: string): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    const now = this.#handles.clock.monotonic();
    const seen = this.#store.seen(key);
    const { spent } = together(entry.own, sinceIncluded(entry, seen?.record, seen?.data), now, this.#rule());
    if (seen?.record !== undefined) entry.included = seen.data;
    entry.madeGood++;
    entry.own = makeGood({ ...entry.own, spent }, 1, now, this.#rule());
  }

  /** Writes all failures that arrived since the last write together, so that many failures at once cost few writes. */
  async #count(key: string, entry: Entry): Promise<void> {
    const some = entry.failed.splice(0);
    const { successes } = entry;
    const scope = subjectOf(key)?.scope;
    if (some.length === 0 || scope === undefined) return;
    const { clock, random } = this.#handles;
    // `write` may call its plan several times, each time on a newer record; the outcome of the last call counts.
    let tally = entry.own;
    let { madeGood } = entry;
    await this.#store.write(key, (found, data) => {
      const prober = this.#prober(key);
      const failures = some.map(({ failure, request, again }) => ({
        ...failure,
        probe: prober === request && !again,
      }));
      const now = clock.monotonic();
      const before = sinceIncluded(entry, found, data);
      const outcome = onFailures(scope, entry.own, before, failures, now, this.#rule(), random);
      ({ tally } = outcome);
      ({ madeGood } = entry);
      const { record } = outcome;
      if (record === undefined) return undefined;
      const probe = failures.some((failure) => failure.probe);
      const done = (written: Uint8Array) => {
        entry.included = written;
        this.#closed(key, record, some.at(-1)!.request);
      };
      return { record, probe, done };
    });
    // A success that came while the failures were being written ended the row, so they are not added to it; and what it made good stays so.
    const row = entry.successes === successes ? tally.row : 0;
    const counted = { ...tally, worked: entry.own.worked, row };
    entry.own = makeGood(counted, entry.madeGood - madeGood, clock.monotonic(), this.#rule());
    this.#publish(key);
  }

  /** A failure record or probe changed. `gone`: the data of a record that was deleted. */
  #onOwn(path: string, gone: Uint8Array | undefined): void {
    const key = failureKey(path);
    if (key === undefined) return;
    if (path === failurePath(key) && gone !== undefined) {
      const record = this.#store.decode(key, gone);
      const entry = this.#entries.get(key);
      const now = this.#handles.clock.monotonic();
      // A deleted record means that a launch succeeded: the row is over, but what its failures have spent of the hour's budget stays
      // spent, but for what was made good here.
      if (entry !== undefined) {
        const before = sinceIncluded(entry, record, gone);
        entry.own = { ...together(entry.own, before, now, this.#rule()), row: 0 };
      }
      for (const field of ["since", "until", "spent"]) this.#handles.ages.forget(`${key} ${field}`);
    }
    this.#publish(key);
  }

  /** Passes on to the scheduler what is known of the failures of a key. */
  #publish(key: string): void {
    const scope = subjectOf(key)?.scope;
    const record = this.#store.seen(key)?.record;
    const own = this.#entries.get(key)?.own;
    if (scope === undefined) return;
    // The gate of an offering depends on the shared record alone. Before there is one, each launcher counts its own failures.
    if (record === undefined && (scope === "offering" || own === undefined))
      return this.#report(key, undefined);
    const base = scope === "offering" ? newTally() : (own ?? newTally());
    const tally = together(base, record, this.#handles.clock.monotonic(), this.#rule());
    this.#report(key, { tally, pause: record?.pause, prober: this.#prober(key) });
  }

  /** The request that tests the offering, in any launcher. */
  #prober(key: string): string | undefined {
    const entry = this.#handles.view.own.get(probePath(key));
    return entry && decodeProbe(entry.data);
  }

  async #isOurs(key: string): Promise<boolean> {
    const { tree } = this.#handles;
    const stat = await quiet(tree.stat(probePath(key)));
    return stat !== undefined && stat.ephemeralOwner === tree.session().id;
  }

  /**
   * Removes a probe of this process that belongs to no launch, because the answer to its creation or deletion was lost. It would live
   * as long as the session, and all launchers would wait for its result.
   */
  async #clear(key: string): Promise<void> {
    const { tree, log } = this.#handles;
    const request = this.#prober(key);
    for (const permit of this.#permits)
      if (permit.request === request && offeringKey(permit.offering) === key) return;
    if (!(await this.#isOurs(key))) return;
    log.info({ offering: key, request }, "removed the trial launch of an offering that nobody is making");
    await quiet(tree.delete(probePath(key)));
  }

  /** An offering closed, or closed again; of labels the scheduler tells. */
  #closed(key: string, { kind, error, failures, pause }: FailureRecord, request: string): void {
    const subject = subjectOf(key);
    if (pause === undefined || subject?.scope !== "offering") return;
    const { journal, counters, ages } = this.#handles;
    const { provider, az, type } = subject;
    const until = ages.treeTimeOf(pause.until);
    const facts = { provider, az, type, kind, error, failures, ...pause, until };
    journal.write({ event: "offering.closed", request, facts });
    counters.add("launcher.breakers", 1, { provider, change: "opened" });
  }

  /** An offering works again: into the journal and the metric, as `#closed`. */
  #opened(key: string, { failures, since }: FailureRecord, request: string): void {
    const subject = subjectOf(key);
    if (subject?.scope !== "offering") return;
    const { journal, counters, ages } = this.#handles;
    const { provider, az, type } = subject;
    const facts = { provider, az, type, failures, since: ages.treeTimeOf(since) };
    journal.write({ event: "offering.open", request, facts });
    counters.add("launcher.breakers", 1, { provider, change: "closed" });
  }
}

/** The records that a launch counts for: its offering and, where it costs a machine, its label. */
function keysOf({ offering, label }: Permit): readonly string[] {
  return label === null ? [offeringKey(offering)] : [labelKey(label), offeringKey(offering)];
}

/** The record, less what was made good here since its failures are all in `own`. */
function sinceIncluded(
  { own, included }: Entry,
  record: FailureRecord | undefined,
  data: Uint8Array | undefined,
): FailureRecord | undefined {
  if (record === undefined || data === undefined || included === undefined) return record;
  return Buffer.from(included).equals(data) ? { ...record, spent: own.spent } : record;
}

/** A machine that answered: only then does a record become `ready`. Static hosts have an `external_id`, too. */
function isUp(entry: NodeEntry | undefined): boolean {
  if (entry === undefined || entry.record.externalId === null) return false;
  return entry.record.state === "ready" || entry.record.state === "in-use";
}

/**
 * Whether the machine of a node has been up before, so that it comes from a check or is woken, which says nothing of launches. A record has no
 * address before it is `ready` for the first time.
 */
function wasUp(entry: NodeEntry | undefined): boolean {
  return isUp(entry) || (entry !== undefined && entry.record.interfaceIp !== null);
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
