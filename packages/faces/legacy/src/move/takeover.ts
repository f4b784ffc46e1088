import type { Holder, LauncherKind, TakeoverFacts } from "@nodeyard/operations";
import { counted } from "@nodeyard/runtime";

/** What the judgement needs of the configurations and the driver. */
export interface TakeoverWish {
  /** The kind of launcher that is to serve the provider. */
  readonly to: LauncherKind;
  readonly driver: string;
  /** Launchers of one kind alone may serve it: its nodes are hosts or slots that exist. */
  readonly exclusive: boolean;
  /** Count launches and deletions under way, and requests that a launcher has taken, as something to wait for before the first step. */
  readonly idle: boolean;
  /** Slots of hosts of the file without a record, and used records of hosts that it does not have, by node. Only with an inventory. */
  readonly hosts?: { readonly missing: readonly string[]; readonly strange: readonly string[] };
  /** How the two files differ over the provider; empty where one alone is known. */
  readonly differences: readonly string[];
}

/**
 * `stop`: going on would harm. `wait`: has to end first. `note`: to know. `step`: what to do next. Codes are stable: programs read them.
 */
export interface TakeoverFinding {
  readonly level: "stop" | "wait" | "note" | "step";
  readonly code: string;
  readonly text: string;
}

/** The state of a move. */
export interface TakeoverVerdict {
  /** The right kind alone serves the provider, and all of its nodes and requests are in good hands. */
  readonly done: boolean;
  /** The next step may be done now. */
  readonly safe: boolean;
  readonly findings: readonly TakeoverFinding[];
}

/** Nodepool's; others have to be empty before it comes back, and it cannot read them. */
const NODEPOOLS: ReadonlySet<string> = new Set(
  "aws azure fake gce ibmvpc kubernetes metastatic openshift openshiftpods openstack static".split(" "),
);
/** Machines that the other kind made are known by the id in their records (docs/how-to/replace-a-python-launcher.md). */
const KEPT: ReadonlySet<string> = new Set(["static", "metastatic", "openstack", "aws"]);
/** A launcher works on a node in these. */
const MOVING: ReadonlySet<string> = new Set([
  "init",
  "building",
  "testing",
  "used",
  "deleting",
  "failed",
  "aborted",
]);

const NAMES: Readonly<Record<LauncherKind, string>> = {
  python: "Nodepool's launcher",
  nodeyard: "Nodeyard's launcher",
};

/** Judges a move of a provider from one kind of launcher to the other. Pure. */
export function judgeTakeover(facts: TakeoverFacts, wish: TakeoverWish): TakeoverVerdict {
  const { provider, pools } = facts;
  const from: LauncherKind = wish.to === "nodeyard" ? "python" : "nodeyard";
  const [old, next] = [
    pools.filter(({ kind }) => kind === from),
    pools.filter(({ kind }) => kind === wish.to),
  ];
  const findings: TakeoverFinding[] = [];
  const say = (level: TakeoverFinding["level"], code: string, text: string) =>
    void findings.push({ level, code, text });
  const hostsOf = (list: typeof pools) => [...new Set(list.map(({ host }) => host))].join(", ");

  if (facts.unreadable.length > 0)
    say(
      "stop",
      "node.unreadable",
      `${list(facts.unreadable)} cannot be read, and may be of ${provider}: repair or remove them (nodeyard delete)`,
    );
  if (wish.to === "python" && !NODEPOOLS.has(wish.driver))
    say("stop", "driver.own", `Nodepool has no driver ${wish.driver}: its nodes end here`);
  for (const text of wish.differences) say("note", "config.differs", text);
  const phase: Phase = old.length > 0 ? "before" : next.length === 0 ? "between" : "after";
  judgeNodes(facts, wish, phase, say);
  judgeRequests(facts, wish, phase, say);
  if (next.length === 0 && (phase === "between" || wish.exclusive)) judgeGap(facts, wish, phase, say);
  if (facts.uploads > 0)
    say(
      "note",
      "image.uploads",
      `images of ${counted(facts.uploads, "diskimage")} stay: builders of both kinds use the same records, so that builder moves apart`,
    );

  const isBad = findings.some(({ level }) => level === "stop" || level === "wait");
  const done = old.length === 0 && next.length > 0 && !isBad;
  // A launcher of Nodeyard that reads its file while it runs deletes the free nodes of a provider that has left the file.
  const leave =
    from === "python"
      ? `take ${provider} out of the file of ${NAMES.python} on ${hostsOf(old)}, and stop or restart that process: while it runs, its locks stay`
      : `stop ${NAMES.nodeyard} on ${hostsOf(old)}, take ${provider} out of its file, and start it again`;
  const begin = `start ${NAMES[wish.to]} with ${provider} in its file, or let it read the file again`;
  if (done) say("note", "done", `${NAMES[wish.to]} on ${hostsOf(next)} alone serves ${provider}`);
  else if (old.length > 0 && next.length > 0)
    say(
      "step",
      "leave",
      `both serve ${provider} now: a request is locked by one of them, but limits are counted by each for itself, so that both together may launch twice as many nodes; ${leave}`,
    );
  else if (old.length > 0 && wish.exclusive)
    say(
      "step",
      "leave",
      `${leave}; then ${begin}. Not both at once: hosts and slots would be given out twice`,
    );
  else if (old.length > 0) say("step", "begin", `${begin}; then ${leave}`);
  else if (next.length === 0) say("step", "begin", `nobody serves ${provider}: ${begin}`);
  return { done, safe: !isBad, findings };
}

/** The launcher that is to go serves the provider still, nobody does, or it has gone. */
type Phase = "before" | "between" | "after";

type Say = (level: TakeoverFinding["level"], code: string, text: string) => void;

/** What becomes of the nodes. */
function judgeNodes(facts: TakeoverFacts, wish: TakeoverWish, phase: Phase, say: Say): void {
  const { nodes, backings, provider } = facts;
  const gap = facts.onlyHere.join(", ");
  const tell = (level: TakeoverFinding["level"], code: string, ids: readonly string[], text: string) => {
    if (ids.length > 0) say(level, code, `${list(ids, "node")}: ${text}`);
  };
  const of = (is: (node: TakeoverFacts["nodes"][number]) => boolean) => nodes.filter(is).map(({ id }) => id);
  judgeMoving(facts, wish, phase, tell);
  tell(
    "note",
    "node.used",
    of(({ holder, state }) => holder?.kind === "client" || (state === "in-use" && holder?.kind !== "lease")),
    "in use; stays with its user, and goes when it is returned",
  );
  if (wish.to === "python") judgeReturn(nodes, say, tell);
  if (KEPT.has(wish.driver))
    tell(
      "note",
      "node.free",
      of(({ state, holder, given }) => state === "ready" && holder === null && !given),
      "free; given to requests by either kind",
    );
  else if (phase === "before" && wish.to === "nodeyard")
    tell(
      "wait",
      "node.unknown",
      of(() => true),
      `Nodeyard does not find machines that Nodepool made with the driver ${wish.driver}: set max-servers: 0 in the pools of ${provider}, and wait until they are gone${gap === "" ? "" : `; meanwhile requests for ${gap}, which nobody else offers, fail`}`,
    );
  if (backings.length > 0)
    say(
      "note",
      "slot.backing",
      `backing nodes stay with their slots: ${backings.map(({ id, taken, slots }) => `${id} (${taken} of ${slots} used)`).join(", ")}`,
    );
  const { missing = [], strange = [] } = wish.hosts ?? {};
  if (missing.length > 0)
    say("note", "host.missing", `hosts of the file that get records once they answer: ${missing.join(", ")}`);
  tell(
    "wait",
    "host.strange",
    strange,
    "in use on a host that the file does not have, or has with another user or port: the host would be given out a second time",
  );
}

/** Nodes that a launcher works on. Those of the launcher that is to serve the provider are in good hands. */
function judgeMoving(
  { nodes, provider }: TakeoverFacts,
  { to, idle }: TakeoverWish,
  phase: Phase,
  tell: (level: TakeoverFinding["level"], code: string, ids: readonly string[], text: string) => void,
): void {
  const good = new Set<Holder["kind"] | undefined>(["client", "lease", to]);
  const moving = nodes
    .filter(({ state, holder }) => MOVING.has(state) && !good.has(holder?.kind))
    .map(({ id }) => id);
  const code = "node.moving";
  if (phase !== "before")
    tell(
      phase === "after" ? "wait" : "note",
      code,
      moving,
      `half made or half deleted; the launcher that serves ${provider} ends that`,
    );
  else if (idle) tell("wait", code, moving, "being made or deleted");
  else
    tell(
      "note",
      code,
      moving,
      "being made or deleted; what is not ready when the launcher stops is deleted, and made again for its request (--idle waits)",
    );
}

/** What Nodepool does not know. */
function judgeReturn(
  nodes: TakeoverFacts["nodes"],
  say: Say,
  tell: (level: TakeoverFinding["level"], code: string, ids: readonly string[], text: string) => void,
): void {
  const leases = new Set(nodes.flatMap(({ holder }) => (holder?.kind === "lease" ? [holder.name] : [])));
  if (leases.size > 0)
    say(
      "wait",
      "lease.held",
      `${list([...leases], "lease")}: Nodepool does not know leases; release them (nodeyard release), or let them end`,
    );
  const suspended = nodes.filter((node) => node.suspended).map(({ id }) => id);
  tell(
    "wait",
    "node.suspended",
    suspended,
    "suspended, and Nodepool wakes none: take spares out of the file",
  );
}

/** What becomes of the requests. */
function judgeRequests({ taken, waiting }: TakeoverFacts, wish: TakeoverWish, phase: Phase, say: Say): void {
  if (waiting.length > 0)
    say("note", "request.waits", `${list(waiting, "request")}: not taken yet; may be served by either kind`);
  const from: LauncherKind = wish.to === "nodeyard" ? "python" : "nodeyard";
  const held = taken.filter(({ holder }) => holder?.kind === from);
  if (held.length === 0) return;
  const hosts = [...new Set(held.map(({ holder }) => holder!.name))].join(", ");
  const what = `${list(
    held.map(({ id }) => id),
    "request",
  )}: taken by ${NAMES[from]} on ${hosts}`;
  if (phase !== "before")
    say(
      phase === "after" ? "wait" : "note",
      "request.taken",
      `${what}, which does not go on with them, or serves them elsewhere; restart its process if that lasts: its locks end then, and they are served again`,
    );
  else if (wish.idle) say("wait", "request.taken", what);
  else
    say(
      "note",
      "request.taken",
      `${what}; when its process stops they wait again, in their place (--idle waits)`,
    );
}

/** The time in which nobody serves the provider: Nodepool fails a request once every pool that is registered has declined it. */
function judgeGap(facts: TakeoverFacts, { to }: TakeoverWish, phase: Phase, say: Say): void {
  const { provider, onlyHere, onlyServedHere, otherPython } = facts;
  if (otherPython === 0 || onlyHere.length + onlyServedHere.length === 0) return;
  const others = `while nobody serves ${provider}, Python launchers of other providers fail`;
  if (onlyServedHere.length === 0)
    say(
      "note",
      "labels.gap",
      `${others} requests for ${onlyHere.join(", ")}, which nobody else offers; none waits now: keep that time short`,
    );
  else if (phase === "between")
    // More time makes it worse.
    say("note", "labels.gap", `${others} ${list(onlyServedHere, "request")}, which nobody else can serve`);
  else
    say(
      "wait",
      "labels.gap",
      `${others} ${list(onlyServedHere, "request")}, which nobody else can serve, and their jobs end with NODE_FAILURE. Wait until they are served; ` +
        `or stop all Python launchers, so that requests only wait, and start them again when ${NAMES[to]} serves ${provider}`,
    );
}

/** Some names; of many the number and the first. */
function list(names: readonly string[], noun = "record"): string {
  const few = names.slice(0, 5).join(", ");
  return names.length === 1
    ? `${noun} ${few}`
    : `${counted(names.length, noun)} (${few}${names.length > 5 ? ", ..." : ""})`;
}
