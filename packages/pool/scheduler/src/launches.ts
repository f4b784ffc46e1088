import { labelKey, offeringKey, subjectOf } from "@nodeyard/model";
import type { NodeEntry } from "@nodeyard/view";
import { nextOffering } from "./candidates.ts";
import { hasPlace, isTrusted, newTally, places } from "./failure-rule.ts";
import type { Failures } from "./gate-table.ts";
import { judgeAgain, noteFailures, stoppedBy, tries } from "./gates.ts";
import { gatesOf } from "./offerings.ts";
import { isBeingMade } from "./reuse.ts";
import type { State, Turn } from "./state.ts";
import type { LaunchWanted, LocalPool } from "./types.ts";
import { wakeFreed } from "./waiting.ts";

/**
 * Whether a planned launch is permitted by its plan: its label works, and its offering is open. A label that has to keep to a budget is
 * asked again when the node has its id: launchers that plan at the same moment agree by the ids which launches have the places
 * (launcher/test/label-budget).
 */
export function mayBegin(
  { gates, policy }: State,
  pool: LocalPool,
  label: string,
  az: string | null,
  type: string | undefined,
): boolean {
  const [ofLabel, ...others] = gatesOf(pool, label, az, type);
  if (others.some((key) => gates.closed.has(key))) return false;
  if (policy.providers.get(pool.provider)?.slots !== undefined) return true;
  const tally = gates.failures.get(ofLabel!)?.tally;
  return tally !== undefined && isTrusted(tally, policy.failures);
}

/**
 * A node is to be launched: it begins, waits for launches of its label that are under way, or is given up with a reason, after which
 * its request is planned again.
 */
export function onLaunchWanted(state: State, turn: Turn, launch: LaunchWanted): void {
  if (answer(state, turn, launch)) return;
  const waiting = { ...launch, id: launch.node };
  state.launches.waiting.set(launch.node, waiting);
  state.launches.waits.join("launch", launch.label, waiting);
  state.timers.set("launch", launch.node, turn.steady + launch.limitMs);
}

/** Who wanted it does so no longer, or it waited for too long. */
export function onLaunchGivenUp(state: State, node: string): LaunchWanted | undefined {
  const launch = state.launches.waiting.get(node);
  if (launch === undefined) return undefined;
  state.timers.delete("launch", node);
  state.launches.waiting.delete(node);
  state.launches.waits.leaveAll(launch);
  return launch;
}

/** It waited as long as a launch may take. */
export function onLaunchDue(state: State, turn: Turn, node: string): void {
  const launch = onLaunchGivenUp(state, node);
  if (launch === undefined) return;
  refuse(turn, launch, `the launches under way did not end within ${launch.limitMs} ms`);
}

/** What is known of the failures of an offering or a label is news; undefined: there were none. */
export function onFailuresKnown(state: State, turn: Turn, key: string, after: Failures | undefined): void {
  noteFailures(state, turn, key, after);
  serveKey(state, turn, key);
}

/** What failures lead to is another rule by now. */
export function onFailureRule(state: State, turn: Turn): void {
  for (const [key, known] of state.gates.failures) {
    judgeAgain(state, turn, key, known);
    serveKey(state, turn, key);
  }
}

/** Offerings have no line here: their gates make requests wait before they are planned. */
function serveKey(state: State, turn: Turn, key: string): void {
  const subject = subjectOf(key);
  if (subject?.scope === "label") serveLaunches(state, turn, subject.label);
}

/** Answers those of a label who may begin now, and those who wait for nothing. */
function serveLaunches(state: State, turn: Turn, label: string): void {
  for (const launch of [...state.launches.waits.line("launch", label)]) {
    if (answer(state, turn, launch)) onLaunchGivenUp(state, launch.node);
    // Those behind it are younger.
    else if (state.complete) return;
  }
}

/** The picture of the tree is whole again. */
export function serveAllLaunches(state: State, turn: Turn): void {
  for (const label of state.launches.waits.names("launch")) serveLaunches(state, turn, label);
}

/** False: it has to wait. */
function answer(state: State, turn: Turn, launch: LaunchWanted): boolean {
  const judged = launch.counted ? judgeLabel(state, turn.steady, launch) : "begin";
  if (judged === "wait") return false;
  if (judged === "begin") begin(state, turn, launch);
  else refuse(turn, launch, judged);
  return true;
}

/** What the label says of a launch; a text: why it is refused. */
function judgeLabel(state: State, steady: number, launch: LaunchWanted): string {
  const rule = state.policy.failures;
  const tally = state.gates.failures.get(labelKey(launch.label))?.tally ?? newTally();
  if (isTrusted(tally, rule)) return "begin";
  const most = places(tally, steady, rule);
  if (most === 0)
    return `${tally.row} launches failed in a row, and max-failed-launches-per-hour is ${rule.failedPerHour}; the last error: ${tally.last?.error ?? "none"}`;
  // Older nodes that are not in the picture yet have their places too.
  if (!state.complete) return "wait";
  const making = state.launches.making.of(launch.label);
  if (hasPlace(making, most, launch, rule)) return "begin";
  return launch.again ? "as many are under way as its budget of failed launches allows" : "wait";
}

/**
 * Lets a launch begin. If its offering has closed since the request was planned, or was refused to it, it begins as the next best of its
 * label.
 */
function begin(state: State, turn: Turn, launch: LaunchWanted): void {
  const { node, request, offering } = launch;
  const stop = stoppedBy(state, turn.steady, offeringKey(offering), request);
  const isRefused = launch.without?.includes(offering.type) === true;
  const next = stop !== undefined || isRefused ? nextOffering(state, turn.steady, launch) : undefined;
  if (next === undefined && isRefused) return refuse(turn, launch, "the cloud has no room for it");
  if (next === undefined && stop !== undefined)
    return refuse(
      turn,
      launch,
      stop.trying === undefined ? stop.closed.error : "another request is testing it",
    );
  const key = next?.key ?? offeringKey(offering);
  const closed = state.gates.closed.get(key);
  tries(state, [key], request);
  const probe = closed !== undefined && closed.prober !== request;
  if (next === undefined) return void turn.actions.push({ type: "launch", node, probe });
  const { type, need } = next.offering;
  // Until the record shows it.
  const taken = { ...need, instances: need.instances ?? 1 };
  wakeFreed(state, state.usage.set(node, state.usage.keysOf(node), taken));
  turn.actions.push({ type: "launch", node, probe, instead: { type, need } });
}

/** The controller gives the node up, and the request is planned again. */
function refuse(turn: Turn, { node, label, offering }: LaunchWanted, why: string): void {
  const place = offering.az === null ? offering.provider : `${offering.provider} ${offering.az}`;
  turn.actions.push({
    type: "refuse-launch",
    node,
    why: `no launches of ${label} in ${place} for now: ${why}`,
  });
}

/** Keeps the index of the nodes that are being made; one that is over leaves its place to the next in line. */
export function indexMaking(state: State, turn: Turn, id: string): void {
  const { making, made } = state.launches;
  const was = made.get(id) ?? NONE;
  const is = labelsBeingMade(state, state.nodes.get(id));
  if (was.length === 0 && is.length === 0) return;
  if (is.length === 0) made.delete(id);
  else made.set(id, is);
  for (const label of is) making.add(label, id);
  for (const label of was) {
    if (is.includes(label)) continue;
    making.delete(label, id);
    serveLaunches(state, turn, label);
  }
}

const NONE: readonly string[] = [];

/** A slot costs no machine, nor does a host; what a slot's backing node costs is counted where that is launched. */
function labelsBeingMade({ policy }: State, entry: NodeEntry | undefined): readonly string[] {
  if (entry === undefined) return NONE;
  const { provider, type } = entry.record;
  if (!isBeingMade(entry.record)) return NONE;
  return policy.providers.get(provider ?? "")?.outlivesNodes === true ? NONE : type;
}
