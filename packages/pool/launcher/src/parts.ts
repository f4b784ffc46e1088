import { Registration } from "@nodeyard/coordination";
import { defined } from "@nodeyard/runtime";
import { failureRule, type Policy, type SchedulerEvent } from "@nodeyard/scheduler";
import { Live } from "@nodeyard/telemetry";
import { Fence } from "@nodeyard/tree";
import { View } from "@nodeyard/view";
import { AgeClock } from "./age-clock.ts";
import { LeaseKeeper } from "./clients/leases.ts";
import { MinReady } from "./clients/min-ready.ts";
import { eventLines } from "./event-lines.ts";
import { FailureRecords } from "./failure-records.ts";
import type { Handles } from "./handles.ts";
import type { RecordHandles } from "./held-records.ts";
import { LastErrors } from "./last-errors.ts";
import { Launches } from "./launches.ts";
import { Ledgers } from "./limits/ledger.ts";
import { Loop } from "./loop.ts";
import { Deletions } from "./nodes/deletions.ts";
import type { RequestHandles } from "./nodes/handles.ts";
import { SlotAnswers } from "./nodes/slot-answers.ts";
import type { LauncherConfig, LauncherOptions } from "./options.ts";
import { SliverMachines } from "./providers/machines.ts";
import { Serving } from "./providers/serving.ts";
import { Tasks } from "./tasks.ts";
import { Timings } from "./timings.ts";
import { traceEvents, traceparentFor } from "./trace-events.ts";

/** All parts of a launcher. */
export type Parts = ReturnType<typeof assemble>;

/**
 * Makes the parts of a launcher and connects them; nothing runs yet. `config` returns the configuration in force; `onStanding` is called when
 * a provider or host stands otherwise than before. It fixes which part may call which: the loop gets actions out through `tasks`, and all others get events in through `push`.
 */
export function assemble(
  options: LauncherOptions,
  installation: string,
  config: () => LauncherConfig,
  onStanding: () => void = () => {},
) {
  const { tree, clock, random, scan, log, counters, identity, trace } = options;
  // One clock of ages for all parts, so that one jump suspends all deletions by age together.
  const ages = new AgeClock({ tree, clock });
  const view = new View({ tree, clock, random, log, counters });
  const errors = new LastErrors();
  // An event passes through three layers: journal and log, the last errors of its provider, and the spans where traces are on.
  const lines = errors.around(eventLines(options.journal, log, view), view, clock);
  const handles: Handles = {
    tree,
    view,
    clock,
    random,
    log,
    journal: trace === undefined ? lines : traceEvents(lines, view, () => ages.now(), trace),
    counters,
    live: new Live(clock),
    ages,
  };
  const ledgers = new Ledgers(handles);
  ledgers.setTenants(config().tenantLimits);
  // One fence, since it notices a suspended process by comparing two clocks from one call to the next; one cache of ledgers, since
  // their commits must follow each other.
  const records: RecordHandles = { ...handles, fence: new Fence(tree, clock, random), ledgers };
  const registration = new Registration(handles, identity.hostname);
  // Some parts need the loop and are made before it. They call this only at run time, when `loop` has its value.
  const push = (event: SchedulerEvent) => loop.push(event);
  const failures = new FailureRecords(
    handles,
    (key, after) => push({ type: "failures", key, after }),
    () => failureRule(config().failedLaunchesPerHour),
  );
  const launches = new Launches(failures, push, () => clock.monotonic());
  const { evidence, stateFolder } = options;
  const serving: Serving = new Serving({
    context: {
      ...records,
      scan,
      installation,
      onStanding,
      ...defined({ evidence, stateFolder }),
    },
    registration,
    identity,
    driverOf: options.driverOf,
    onChange: () => tellPolicy(),
  });
  // Called for a new configuration, and whenever a provider opens, closes, or reads its quota again.
  const tellPolicy = () => loop.push({ type: "policy", policy: policyOf(options, config(), serving) });
  const requests: RequestHandles = {
    ...records,
    scan,
    installation,
    launches,
    pools: serving.pools,
    providers: serving.providers,
    openFor: (record) => serving.openFor(record),
    awaitsOffer: (request) => loop.awaitsOffer(request),
    stepsUnderWay: new Map(),
    handOversFailed: new Map(),
    timings: new Timings(),
    ...(trace === undefined ? {} : { traceparentOf: traceparentFor }),
    slots: new SlotAnswers((event) => loop.push(event)),
    // A refusal shows that the quota that we know is out of date, so it is read again at once.
    // The scheduler closes the provider's gate at once; the number that it plans with follows when the cloud has answered.
    quotaRefused: (provider) => {
      loop.push({ type: "quota-refused", provider });
      serving.askQuota(provider);
    },
  };
  const loop: Loop = new Loop(handles, (action) => tasks.perform(action));
  const deletions = new Deletions(requests, (node) => loop.push({ type: "deleted", node }));
  const minReady = new MinReady(handles);
  const tasks = new Tasks(requests, push, serving, deletions, minReady);
  return {
    view,
    ages,
    ledgers,
    registration,
    launches,
    serving,
    loop,
    deletions,
    tasks,
    leases: new LeaseKeeper(records),
    minReady,
    errors,
    sliverMachines: new SliverMachines(serving.providers, clock),
    handles: requests,
    /** Gives the scheduler the configuration in force and the facts of the providers. */
    tellPolicy,
  };
}

/**
 * What the scheduler gets of the configuration and of the open providers. `failedLaunchesPerHour` applies to gates that are closed
 * already.
 */
function policyOf(
  { maxStarting = 256 }: LauncherOptions,
  { labels, tenantLimits, maxHoldAgeMs, failedLaunchesPerHour }: LauncherConfig,
  serving: Serving,
): Policy {
  const failures = failureRule(failedLaunchesPerHour);
  return { ...serving.locals(), labels, tenantLimits, maxHoldAgeMs, maxStarting, failures };
}

/**
 * Passes what the view already contains on to the parts that follow its events from now on. Call it before `view.onEvent`, without an
 * `await` between the two, so that no event is lost or taken twice.
 */
export function seed({ view, loop, launches }: Pick<Parts, "view" | "loop" | "launches">): void {
  for (const [path, after] of view.unreadable.byPath) loop.pushView({ type: "unreadable", path, after });
  for (const [id, after] of view.nodes.byId) loop.push({ type: "node", id, after });
  for (const [id, after] of view.requests.byId) loop.push({ type: "request", id, after });
  for (const id of view.slots.backings.keys())
    loop.push({ type: "backing", id, after: view.slots.facts(id) });
  for (const image of view.images.names()) loop.push({ type: "image", image, after: view.images.get(image) });
  for (const [key, after] of view.components) loop.push({ type: "component", key, after });
  launches.records.seed();
}
