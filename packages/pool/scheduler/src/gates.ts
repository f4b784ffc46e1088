import { labelKey, type NodeRecord, offeringKey, offeringTypeOf, subjectOf } from "@nodeyard/model";
import { poolKey } from "@nodeyard/view";
import { isHopeless, isTrusted, mayTry, opensAt, places, roomAt, type Tally } from "./failure-rule.ts";
import type { Closed, Failures } from "./gate-table.ts";
import { type State, type Turn, treeTimeOf } from "./state.ts";
import { dirtyProvider, recheckAll, recheckFirst } from "./waiting.ts";

/** The first pause after a cloud refused for quota, milliseconds; it doubles with each refusal in a row. */
const FIRST_MS = 2_000;
/** The longest of these pauses. */
const MOST_MS = 300_000;
/** How often a gate that may be tried is looked at while a request waits for it, milliseconds. */
const LOOK_AGAIN_MS = 5_000;

/** The gate of a provider's quota. No offering and no label has this key. */
export function quotaKey(provider: string): string {
  return `quota|${encodeURIComponent(provider)}`;
}

/** A closed gate, and the request that tests it now, if any. */
export interface Stop {
  readonly closed: Closed;
  readonly trying: string | undefined;
}

/** Why a request may not pass a gate now: its time has not come, or another request tries. Undefined: it may. */
export function stoppedBy({ gates }: State, steady: number, key: string, request: string): Stop | undefined {
  const closed = gates.closed.get(key);
  if (closed === undefined) return undefined;
  const trying = closed.prober ?? closed.trying;
  const isFree = trying === undefined || trying === request;
  // A request whose test failed waits like any other until the next test is due.
  if (closed.prober === request || (isFree && mayTry(closed.until, steady))) return undefined;
  return { closed, trying: trying === request ? undefined : trying };
}

/** Marks the request as the one that tries these closed gates; later requests wait for its result. */
export function tries({ gates }: State, keys: readonly string[], request: string): void {
  for (const key of keys) {
    const closed = gates.closed.get(key);
    if (closed !== undefined) closed.trying = request;
  }
}

/** The handler of a testing request has ended. If the cloud did not refuse it for quota, the quota gate opens. */
export function triedBy(state: State, { steady }: Turn, request: string): void {
  for (const [key, closed] of state.gates.closed) {
    if (closed.trying !== request) continue;
    // The request got past the cloud's quota, whatever else became of it; a refusal would have ended the trying before.
    if (closed.code === "capacity.refused") open(state, key);
    else {
      closed.trying = undefined;
      wakeGate(state, steady, key, closed);
    }
  }
}

/**
 * Wakes the first request in line when a test is due. If waiting is of no use (`hopeless`), wakes all of them, so that all are declined
 * now and not one after each failed test.
 */
function wakeGate(state: State, steady: number, key: string, { until, hopeless }: Closed): void {
  if (mayTry(until, steady)) return recheckFirst(state, "gate", key);
  if (!hopeless) return;
  recheckAll(state, "gate", key);
  for (const { id } of state.waits.of("quota")) state.todo.requests.add(id);
  for (const { policy, blocked } of state.pools.values())
    if (blocked !== undefined) state.todo.pools.add(policy.key);
}

/** Takes the failures of an offering or a label; undefined: none are known any more. */
export function noteFailures(state: State, turn: Turn, key: string, after: Failures | undefined): void {
  if (after === undefined) state.gates.failures.delete(key);
  else state.gates.failures.set(key, after);
  judge(state, turn, key);
}

/** Judges a gate again after the configured rule has changed: a gate that the former rule closed may be open now. */
export function judgeAgain(state: State, turn: Turn, key: string, { tally }: Failures): void {
  // A closed label stays closed until a launch succeeds, except when its budget under the new rule is not spent.
  const subject = subjectOf(key);
  if (subject?.scope === "label" && places(tally, turn.steady, state.policy.failures) > 0)
    openLabel(state, turn, key, tally);
  judge(state, turn, key);
}

/** Opens or closes the gate of an offering or a label by its failures. */
function judge(state: State, turn: Turn, key: string): void {
  const known = state.gates.failures.get(key);
  const subject = subjectOf(key);
  if (subject?.scope === "label") return judgeLabel(state, turn, key, subject.label, known?.tally);
  if (known?.pause === undefined) return open(state, key);
  const { pause, tally, prober } = known;
  const rule = state.policy.failures;
  close(state, turn, key, {
    code: pause.why === "budget" ? "offering.budget" : "offering.failing",
    until: opensAt({ spent: tally.spent, pause }, rule),
    prober,
    ...factsOf(state, turn, known),
  });
}

/** A label whose budget is spent stays closed until a launch succeeds. While the budget refills, one request at a time may try. */
function judgeLabel(state: State, turn: Turn, key: string, label: string, tally: Tally | undefined): void {
  const rule = state.policy.failures;
  if (tally === undefined || isTrusted(tally, rule)) return openLabel(state, turn, key, tally);
  const hasRoom = places(tally, turn.steady, rule) > 0;
  // Without room no launch of it begins, even where the row is over: its record has gone, and what this launcher counted has not drained.
  if (hasRoom && tally.row === 0) return openLabel(state, turn, key, tally);
  // Failures in a row that have not spent the budget close nothing.
  if (hasRoom && !state.gates.closed.has(key)) return;
  const until = roomAt(tally, turn.steady, rule);
  const known = factsOf(state, turn, { tally });
  const opened = !state.gates.closed.has(key);
  close(state, turn, key, { code: "offering.budget", until, prober: undefined, ...known });
  if (!opened) return;
  const facts = { label, why: "budget", until: treeTimeOf(turn, until), ...known };
  turn.actions.push({ type: "label-changed", label, change: "spent", facts });
}

/** Opens the gate of a label if it was closed, and reports that it works. */
function openLabel(state: State, turn: Turn, key: string, tally: Tally | undefined): void {
  const subject = subjectOf(key);
  if (!state.gates.closed.has(key) || subject?.scope !== "label") return;
  open(state, key);
  const facts = { label: subject.label, since: treeTimeOf(turn, tally?.since ?? turn.steady) };
  turn.actions.push({ type: "label-changed", label: subject.label, change: "works", facts });
}

/** What a closed gate tells about its failures. */
function factsOf(
  { policy }: State,
  turn: Turn,
  { tally, pause }: Failures,
): Pick<Closed, "failures" | "since" | "kind" | "error" | "hopeless"> {
  const { kind = "unexpected", error = "none" } = tally.last ?? {};
  const hopeless = isHopeless(tally, pause, policy.failures);
  return { failures: tally.row, since: treeTimeOf(turn, tally.since), kind, error, hopeless };
}

/** Closes a gate or renews what is known of a closed one; a test under way goes on. */
function close(state: State, turn: Turn, key: string, closed: Omit<Closed, "trying">): void {
  const { gates, timers } = state;
  gates.closed.set(key, { ...closed, trying: gates.closed.get(key)?.trying });
  reconsiderAround(state);
  wakeGate(state, turn.steady, key, gates.closed.get(key)!);
  if (!mayTry(closed.until, turn.steady)) timers.set("gate", key, closed.until);
}

/** Opens a gate and plans all requests that wait for it again. */
function open(state: State, key: string): void {
  const closed = state.gates.closed.get(key);
  if (closed === undefined) return;
  state.gates.closed.delete(key);
  state.timers.delete("gate", key);
  reconsiderAround(state);
  recheckAll(state, "gate", key);
  wakeQuota(state, key);
}

/** A test of the gate is due: wakes the first request in line. */
export function onGateDue(state: State, turn: Turn, key: string): void {
  const closed = state.gates.closed.get(key);
  if (closed === undefined) return recheckAll(state, "gate", key);
  for (const label of state.policy.labels.keys()) state.todo.labels.add(label);
  wakeQuota(state, key);
  if (state.waits.line("gate", key).size === 0) return;
  recheckFirst(state, "gate", key);
  const due = mayTry(closed.until, turn.steady);
  state.timers.set("gate", key, due ? turn.steady + LOOK_AGAIN_MS : closed.until);
}

/** A gate opened or closed: min-ready asks only where launches work, and no pool yields to one that cannot launch now. */
function reconsiderAround(state: State): void {
  for (const label of state.policy.labels.keys()) state.todo.labels.add(label);
  for (const { id } of state.waits.of("yield")) state.todo.requests.add(id);
}

/** Sets the timer for a request that waits for a gate. `nextTry` undefined: another request tests it. */
export function waitForGate(state: State, turn: Turn, key: string, nextTry: number | undefined): void {
  if (state.timers.get("gate", key) === undefined)
    state.timers.set("gate", key, nextTry ?? turn.steady + LOOK_AGAIN_MS);
}

/**
 * The cloud refused a launch for its quota. Nothing more is launched there for a while, then one request tries: a hundred
 * of them would only be refused a hundred times more (docs/contract/launcher.md, "Quota and limits").
 */
export function onQuotaRefused(state: State, turn: Turn, provider: string): void {
  const key = quotaKey(provider);
  const known = state.gates.closed.get(key);
  // Launches that were sent before the first refusal are refused too; they must not double the pause.
  if (known !== undefined && known.trying === undefined && turn.steady < known.until) return;
  const before = known?.failures ?? 0;
  const until = turn.steady + Math.min(MOST_MS, FIRST_MS * 2 ** before);
  const facts = { kind: "quota", error: "the cloud refused for quota", hopeless: false, prober: undefined };
  const since = known?.since ?? turn.now;
  const failures = before + 1;
  state.gates.closed.set(key, {
    code: "capacity.refused",
    until,
    failures,
    since,
    trying: undefined,
    ...facts,
  });
  state.timers.set("gate", key, until);
}

/** A machine was deleted, or the quota has grown: the first waiting request may try at once. */
export function quotaFreed(state: State, provider: string): void {
  const key = quotaKey(provider);
  const refused = state.gates.closed.get(key);
  if (refused === undefined) return;
  state.gates.closed.set(key, { ...refused, until: Number.NEGATIVE_INFINITY });
  state.timers.delete("gate", key);
  dirtyProvider(state, provider);
}

/** The gate of an offering that the cloud has no room for. */
export function withoutRoom({ gates }: State, key: string): Closed | undefined {
  const closed = gates.closed.get(key);
  return closed?.kind === "capacity" && closed.code === "offering.failing" ? closed : undefined;
}

/** What a node was bought as. */
export function offeringOf({ pools }: State, record: NodeRecord, label: string): string {
  const { provider, pool, az } = record;
  const types = pools.get(poolKey(provider, pool))?.policy.types;
  const type = offeringTypeOf(record) ?? types?.get(label) ?? label;
  return offeringKey({ provider: provider ?? "", az, type });
}

/** A machine of an offering was deleted. Where the cloud had no room, the first waiting request may try at once: there is most likely some now. */
export function roomFreed(state: State, { steady }: Turn, key: string): void {
  const closed = withoutRoom(state, key);
  if (closed === undefined) return;
  state.gates.closed.set(key, { ...closed, until: Math.min(closed.until, steady) });
  recheckFirst(state, "gate", key);
}

/** Requests that wait for a quota stand at the heads of queues and not in the gate's line, so the pools of the provider are woken. */
function wakeQuota(state: State, key: string): void {
  const [scope, provider = ""] = key.split("|");
  if (scope === "quota") dirtyProvider(state, decodeURIComponent(provider));
}

/** The gates that a launch passes. The label's budget is first, because it counts for all providers together. */
export function keysOf(label: string, offering: string): readonly string[] {
  return [labelKey(label), offering];
}
