import { fenceOf } from "@nodeyard/coordination";
import { DriverError, type LabelConfig } from "@nodeyard/driver";
import {
  costOf,
  leaseIdOf,
  type NodePatch,
  type NodePrice,
  type NodeRecord,
  offeringTypeOf,
  priceOf,
  withOwn,
} from "@nodeyard/model";
import { backoff, messageOf, sleep } from "@nodeyard/runtime";
import type { PlannedSlot } from "@nodeyard/scheduler";
import { FenceLost, treeNow } from "@nodeyard/tree";
import type { Permit } from "../failure-records.ts";
import type { ServingPool } from "../handles.ts";
import type { HeldNode, HeldRequest } from "../held-records.ts";
import { LaunchRefused } from "../launches.ts";
import { labelBoughtAs } from "../providers/offerings.ts";
import { typeOf } from "../providers/prices.ts";
import { attemptLaunch, type Launch } from "./attempt.ts";
import { ImageGone } from "./boot-image.ts";
import { isUnproven, tellCanary } from "./canary-report.ts";
import { keepConsole } from "./console.ts";
import type { LaunchHandles } from "./handles.ts";
import { removeMachine } from "./remove-machine.ts";
import { tagOf } from "./tag.ts";

/** How a launch ended; each is also the state that the record has then. `why` is the last error. */
type LaunchOutcome =
  | { readonly result: "ready" }
  | { readonly result: "failed" | "aborted"; readonly why: string };

/**
 * Most attempts to remove what a failed launch left before the next launch. More would keep the client waiting; the deletion of the
 * record tries for as long as it takes.
 */
const REMOVALS = 3;

/**
 * After errors of these kinds the launch ends without another attempt, because the place is at fault and not the label; the request is
 * planned again.
 */
const REPLANNED: ReadonlySet<string> = new Set(["quota", "capacity", "unsupported", "access"]);

/** Of these, the ones after which a label with several offerings is launched as the next of them. */
const FALLS_BACK: ReadonlySet<string> = new Set(["capacity", "unsupported"]);

/** Errors of these kinds count against the image: the machine had its time to boot and did not answer as it should. */
const UNANSWERED: ReadonlySet<string> = new Set(["timeout", "host-key"]);

/** Kinds after which there may be a machine with something on its console. */
const SILENT: ReadonlySet<string> = new Set(["timeout", "host-key", "transient", "fatal", "unexpected"]);

/**
 * Makes the machine of a locked `building` record and checks that it answers. Repeats a failed try as often as the provider's settings
 * say while the breaker of the offering is closed, and removes what a failed try made before the next one. An offering without room is no
 * attempt where the label has another one. Where nothing can be launched now (REPLANNED) it gives up at once, and the request is planned
 * again. `write` makes the record `ready`, alone or with what waits for it. Rejects with FenceLost, ImageGone or the signal's reason; the record then stays `building`, and the machine goes with it.
 */
export async function launchNode(
  context: LaunchHandles,
  pool: ServingPool,
  request: HeldRequest,
  node: HeldNode,
  label: LabelConfig,
  { slot, permitted = false }: { readonly slot?: PlannedSlot; readonly permitted?: boolean },
  write: (ready: NodePatch) => Promise<void>,
  signal: AbortSignal,
): Promise<LaunchOutcome> {
  const whole: Launch = { pool, request, node, label, slot };
  const { config } = pool.open;
  const began = treeNow(context);
  const stopwatch = new LaunchWatch(context, whole);
  /** Types that the cloud refused. */
  const without: string[] = [];
  for (let attempt = 1; ; attempt++) {
    // Each other attempt asks anew: since the last one the offering may have closed, or the label may have spent its budget.
    const asked = await begun(context, whole, without, attempt > 1, attempt === 1 && permitted, signal);
    if (asked instanceof LaunchRefused) return give(node, "aborted", asked);
    const { permit, instead, launch } = asked;
    const { type } = permit.offering;
    const tried = context.clock.monotonic();
    stopwatch.begin();
    const { id, record } = node;
    const attempts = { attempt, of: config.launchAttempts, az: record.az, ...(label.offerings && { type }) };
    context.journal.write({ event: "node.launching", node: id, facts: attempts, record });
    try {
      // First: limits count by the record, and what is launched is to stand in it.
      if (instead !== undefined) await node.write(boughtAs(record, instead));
      const ready = await attemptLaunch(context, launch, attempt, signal, (step) => stopwatch.at(step));
      // The record first: when it cannot be written, the launch has not succeeded, whatever the machine says.
      await write({ ...ready, state: "ready" });
      stopwatch.ended("ready");
      await context.launches.records.succeeded(permit);
      await tellCanary(context, node.record.imageId, context.clock.monotonic() - tried);
      const facts = {
        provider: config.name,
        pool: pool.name,
        label: label.name,
        attempt,
        ms: Math.round(treeNow(context) - began),
        server_id: node.record.externalId,
        resources: node.record.resources,
        cost: priceFact(priceOf(node.record)),
        steps: stopwatch.steps,
      };
      context.journal.write({ event: "node.ready", node: id, facts, record: node.record });
      context.timings.launched(pool.key, label.name, facts.ms);
      return { result: "ready" };
    } catch (thrown) {
      const error = fenceOf(thrown);
      // These say nothing of the place or the label, so no failure is counted.
      if (error instanceof FenceLost || error instanceof ImageGone || signal.aborted) {
        stopwatch.brokeOff(error, signal);
        await context.launches.records.leave(permit);
        throw error;
      }
      const kind = kindOf(error);
      stopwatch.ended(kind);
      const next = nextAfter(kind, label, config.launchAttempts - attempt + without.length);
      // A test of a closed offering is not over with an error that may pass.
      const again = next === "again" && kind === "transient";
      await failed(context, launch, attempt, permit, error, again, signal);
      if (next === "failed" || next === "aborted") return give(node, next, error);
      if (next === "falls back") without.push(type);
      // The machine could not be removed. The record keeps its id and is deleted together with it; the request gets a new record.
      if (!(await cleared(context, launch, attempt, signal))) return give(node, "aborted", error);
      await pause(context, next, attempt, signal);
    }
  }
}

/** What follows a failure of this kind: another attempt, one as another offering, or an end. `left`: how many attempts there are. */
function nextAfter(
  kind: DriverError["kind"] | "unexpected",
  { offerings }: LabelConfig,
  left: number,
): "again" | "falls back" | "aborted" | "failed" {
  if (FALLS_BACK.has(kind) && offerings !== undefined) return "falls back";
  if (REPLANNED.has(kind)) return "aborted";
  // A wrong configuration is wrong at the next attempt, too.
  return left <= 0 || kind === "configuration" ? "failed" : "again";
}

/** Another offering is tried at once, since the cloud was asked for nothing of it yet. */
async function pause(
  { clock, random }: LaunchHandles,
  next: "again" | "falls back",
  attempt: number,
  signal: AbortSignal,
): Promise<void> {
  if (next === "again") await sleep(clock, backoff(random, attempt - 1, 250, 10_000), signal);
}

/** The fields of a record that say what its node is bought as. */
function boughtAs({ driverData }: NodeRecord, { type, need }: NonNullable<Begun["instead"]>): NodePatch {
  return { resources: { ...need }, driverData: withOwn(driverData, { offering: type }) };
}

/** A launch that may begin. */
type Begun = Awaited<ReturnType<LaunchHandles["launches"]["begin"]>> & {
  /** With the label as it is bought. */
  readonly launch: Launch;
};

/** Resolves with the permit when the plan or the scheduler lets the launch begin, or with the error that says why it does not. */
async function begun(
  context: LaunchHandles,
  whole: Launch,
  without: readonly string[],
  again: boolean,
  permitted: boolean,
  signal: AbortSignal,
): Promise<Begun | LaunchRefused> {
  const { pool, request, node, label } = whole;
  const { config, driver } = pool.open;
  const type = offeringTypeOf(node.record) ?? typeOf(pool.open, label);
  const offering = { provider: config.name, az: node.record.az, type };
  // A slot costs no machine; what its backing node costs is counted where that is launched.
  const counted = driver.slots === undefined;
  const of = { label: label.name, pool: pool.key, request: request.id, node: node.id };
  const wanted = { offering, ...of, without, again, counted };
  try {
    const limitMs = config.launchTimeoutMs;
    const begun = await context.launches.begin({ ...wanted, limitMs }, permitted, signal);
    const { type } = begun.permit.offering;
    const bought = labelBoughtAs(pool.open, label, label.offerings && type, node.record.az);
    if (bought !== undefined) return { ...begun, launch: { ...whole, label: bought } };
    // A reload changed the offerings between the plan and this launch.
    await context.launches.records.leave(begun.permit);
    return new LaunchRefused(`label ${label.name} is not configured as ${type} here any more`);
  } catch (error) {
    if (error instanceof LaunchRefused) return error;
    throw error;
  }
}

/** Reports a failed attempt: to the journal, the failure records, the image's trial and the console. `again`: another one follows. */
async function failed(
  context: LaunchHandles,
  { pool, request, node, label }: Launch,
  attempt: number,
  permit: Permit,
  error: unknown,
  again: boolean,
  signal: AbortSignal,
): Promise<void> {
  const { config } = pool.open;
  const kind = kindOf(error);
  if (kind === "unexpected") context.counters.add("launcher.unexpected", 1, { place: "launch" });
  // At once, so that other launches at this provider wait instead of being refused as well.
  if (kind === "quota") context.quotaRefused(config.name);
  if (error instanceof DriverError && error.zonesWithRoom !== undefined)
    context.zonesWithRoom(config.name, permit.offering.type, error.zonesWithRoom);
  const facts = {
    node: node.id,
    request: request.id,
    provider: config.name,
    attempt,
    of: config.launchAttempts,
    kind,
    error: messageOf(error),
  };
  const { id, record } = node;
  context.journal.write({ event: "node.launch-failed", node: id, request: request.id, facts, record });
  const isSilent = UNANSWERED.has(kind);
  // A build on trial that does not boot is the build's fault: it must not close the offering for proven builds.
  if (isSilent && isUnproven(context, node.record.imageId)) await context.launches.records.leave(permit);
  else await context.launches.records.failed(permit, { kind, error: messageOf(error) }, again);
  if (isSilent) await tellCanary(context, node.record.imageId, undefined);
  if (SILENT.has(kind)) {
    const of = { tag: tagOf(context, node), node: node.id, request: request.id, attempt };
    await keepConsole(context, pool.open, label, of, node.record.externalId, signal);
  }
}

/** Removes what a failed attempt made. False: it is not certain that everything is removed. */
async function cleared(
  context: LaunchHandles,
  { pool, request, node }: Launch,
  attempt: number,
  signal: AbortSignal,
): Promise<boolean> {
  for (let removal = 1; ; removal++) {
    try {
      const of = { node: node.id, of: "clean-up", attempt } as const;
      await removeMachine(context, pool.open, node, of, signal);
      return true;
    } catch (error) {
      if (!(error instanceof DriverError)) throw error;
      context.log.warn(
        { node: node.id, request: request.id, attempt, removal, error: messageOf(error) },
        "cannot remove what a failed launch made",
      );
      if (removal >= REMOVALS) return false;
      await sleep(context.clock, backoff(context.random, removal - 1, 500, 10_000), signal);
    }
  }
}

/** Ends the launch without a machine: writes the state and returns it with the reason. */
async function give(node: HeldNode, result: "failed" | "aborted", error: unknown): Promise<LaunchOutcome> {
  await node.write({ state: result });
  return { result, why: messageOf(error) };
}

function kindOf(error: unknown): DriverError["kind"] | "unexpected" {
  return error instanceof DriverError ? error.kind : "unexpected";
}

/** The requestor of requests that belong to a lease. */
const LEASES_ASK = "Nodeyard:lease";

/**
 * Counts and times the attempts of one launch (docs/contract/launcher.md, "Attempts and deletions"): from the first one on,
 * without waits for its turn.
 */
class LaunchWatch {
  readonly #context: Pick<LaunchHandles, "clock" | "counters">;
  readonly #launch: Launch;
  /** When the first attempt began; undefined before. Monotonic milliseconds, as `#since`. */
  #began: number | undefined;
  /** The step under way; "" before the first of an attempt. It is a dimension of the metric, so a failure shows where it happened. */
  #step = "";
  #since = 0;
  /** Milliseconds that each step of the attempt took. */
  #steps: Record<string, number> = {};

  constructor(context: Pick<LaunchHandles, "clock" | "counters">, launch: Launch) {
    this.#context = context;
    this.#launch = launch;
  }

  /** An attempt begins. */
  begin(): void {
    this.#began ??= this.#context.clock.monotonic();
    this.#step = "";
    this.#steps = {};
  }

  /** Sets the current step. */
  at(step: string): void {
    const now = this.#context.clock.monotonic();
    if (this.#step !== "")
      this.#steps[this.#step] = Math.round((this.#steps[this.#step] ?? 0) + now - this.#since);
    this.#since = now;
    this.#step = step;
  }

  /** Milliseconds by step of the attempt so far, that under way included. */
  get steps(): Readonly<Record<string, number>> {
    this.at(this.#step);
    return this.#steps;
  }

  /** The launch has ended: with `ready`, or with the kind of its error. */
  ended(result: string): void {
    const provider = this.#launch.pool.open.config.name;
    this.#context.counters.add("launcher.launches", 1, { provider, result });
    this.#time(result);
  }

  /** Something else ended it, which says nothing of the place; our own stop says nothing at all. */
  brokeOff(error: unknown, signal: AbortSignal): void {
    if (!signal.aborted) this.#time(error instanceof ImageGone ? "image-gone" : "lost");
  }

  #time(result: string): void {
    const { clock, counters } = this.#context;
    const { pool, node, request } = this.#launch;
    const now = clock.monotonic();
    counters.time("launcher.launch", now - (this.#began ?? now), {
      provider: pool.open.config.name,
      az: node.record.az ?? "",
      result,
      requestor: askerOf(request.record.requestor),
      step: this.#step,
    });
  }
}

/** The requestor, for metrics. All leases count as one, because each has its own requestor and would be a time series of its own. */
function askerOf(requestor: string | null): string {
  return leaseIdOf(requestor) === undefined ? (requestor ?? "") : LEASES_ASK;
}

/** For the journal, which is asked who bears the cost of a machine. */
function priceFact(price: NodePrice | undefined): object | null {
  return price?.partOf === undefined ? costOf(price) : { ...costOf(price), part_of: price.partOf };
}
