import { Registration } from "@nodeyard/coordination";
import { defined } from "@nodeyard/runtime";
import { failureRule, type Policy } from "@nodeyard/scheduler";
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
import { spentEvent } from "./limits/spending.ts";
import { Loop } from "./loop.ts";
import { Deletions } from "./nodes/deletions.ts";
import type { RequestHandles } from "./nodes/handles.ts";
import { SlotAnswers } from "./nodes/slot-answers.ts";
import type { LauncherConfig, LauncherOptions } from "./options.ts";
import { SliverMachines } from "./providers/machines.ts";
import { Serving } from "./providers/serving.ts";
import { Tasks } from "./tasks.ts";
import { Timings } from "./timings.ts";
import { TracedJournal, traceparentFor } from "./trace-events.ts";

/** All parts of a launcher. */
export type Parts = ReturnType<typeof assemble>;

/**
 * Makes the parts of a launcher and connects them; nothing runs yet. `config` returns the configuration in force; `onStanding` is called when
 * a provider or host stands otherwise than before. Each part follows the view itself, which it begins to hear when that is whole, in the order
 * in which they are made here. The loop is the first: all others get events in by its `push`, and it gets actions out through `tasks`, the last.
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
    journal: trace === undefined ? lines : new TracedJournal(lines, view, () => ages.now(), trace),
    counters,
    live: new Live(clock),
    ages,
  };
  const loop = new Loop(handles);
  const { push } = loop;
  const timings = new Timings();
  view.follow((event) => timings.onEvent(event));
  const ledgers = new Ledgers(handles);
  ledgers.setTenants(config().tenantLimits, config().budgets);
  view.follow((event) => {
    const spent = event.type === "own" ? spentEvent(event.path, event.after, handles) : undefined;
    if (spent !== undefined) push(spent);
  });
  // One fence, since it notices a suspended process by comparing two clocks from one call to the next; one cache of ledgers, since
  // their commits must follow each other.
  const records: RecordHandles = { ...handles, fence: new Fence(tree, clock, random), ledgers };
  const registration = new Registration(handles, identity.hostname);
  const failures = new FailureRecords(
    handles,
    (key, after) => push({ type: "failures", key, after }),
    () => failureRule(config().failedLaunchesPerHour),
  );
  const launches = new Launches(failures, push, () => clock.monotonic());
  const { evidence, stateFolder } = options;
  const serving = new Serving({
    context: {
      ...records,
      scan,
      installation,
      onStanding,
      noteCaches: (backing, caches) => push({ type: "caches", backing, caches }),
      ...defined({ evidence, stateFolder }),
    },
    registration,
    identity,
    driverOf: options.driverOf,
    // Whenever a provider opens, closes, or reads its quota again, and for a new configuration.
    onChange: (locals) => push({ type: "policy", policy: policyOf(options, config(), locals) }),
  });
  const requests: RequestHandles = {
    ...records,
    scan,
    installation,
    ...defined({ check: options.check }),
    launches,
    pools: serving.pools,
    providers: serving.providers,
    openFor: (record) => serving.openFor(record),
    awaitsOffer: (request) => loop.awaitsOffer(request),
    stepsUnderWay: new Map(),
    handOversFailed: new Map(),
    timings,
    ...(trace === undefined ? {} : { traceparentOf: traceparentFor }),
    slots: new SlotAnswers(push),
    zonesWithRoom: (provider, offered, zones) => push({ type: "zones-with-room", provider, offered, zones }),
    // A refusal shows that the quota that we know is out of date, so it is read again at once.
    // The scheduler closes the provider's gate at once; the number that it plans with follows when the cloud has answered.
    quotaRefused: (provider) => {
      push({ type: "quota-refused", provider });
      serving.askQuota(provider);
    },
  };
  const deletions = new Deletions(requests, (node) => push({ type: "deleted", node }));
  const minReady = new MinReady(handles);
  const tasks = new Tasks(requests, push, serving, deletions, minReady);
  loop.carriedOutBy((action) => tasks.perform(action));
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
    leases: new LeaseKeeper(records, (tenant) => config().tenantLimits.has(tenant)),
    minReady,
    errors,
    sliverMachines: new SliverMachines(serving.providers, clock),
    handles: requests,
  };
}

/**
 * What the scheduler gets of the configuration and of the open providers. `failedLaunchesPerHour` applies to gates that are closed
 * already.
 */
export function policyOf(
  { maxStarting = 256 }: Pick<LauncherOptions, "maxStarting">,
  { labels, tenantLimits, budgets = new Map(), shares, maxHoldAgeMs, failedLaunchesPerHour }: LauncherConfig,
  locals: ReturnType<Serving["locals"]>,
): Policy {
  const failures = failureRule(failedLaunchesPerHour);
  return { ...locals, labels, tenantLimits, budgets, shares, maxHoldAgeMs, maxStarting, failures };
}
