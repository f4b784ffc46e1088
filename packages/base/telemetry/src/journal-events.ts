import type { Log } from "./log.ts";

/** What an event of the journal means, and how the log tells it. */
interface EventKind {
  /** One line, for `explain` and, with a small first letter, as the text of the line in the log. */
  readonly meaning: string;
  /** The level of the log line; null: the writer of the event logs lines of its own. */
  readonly level: "debug" | "info" | "warn" | "error" | null;
  /**
   * Names of its facts, which are fields of the line. The same names are documented in the reference, so `npm run generate` shows a
   * change of them.
   */
  readonly facts: readonly string[];
}

/** One line per event in the tables: its level, its meaning, and its facts. */
const kind =
  (level: EventKind["level"]) =>
  (meaning: string, ...facts: readonly string[]): EventKind => ({ meaning, level, facts });
const [debug, info, warn, error] = [kind("debug"), kind("info"), kind("warn"), kind("error")];

/** Facts of every event of a node whose record is known; a line in the log has them as fields, too. */
export const NODE_FIELDS = ["provider", "pool", "label"] as const;

/** Facts of how a tenant stands with its budget. */
const BUDGET_FACTS = [
  "tenant",
  "spent",
  "budget",
  "currency",
  "per_hour",
  "begins_anew",
  "unpriced",
] as const;

/** Every event of the journal. The log tells each in one line, and docs/reference/log-events.md lists them. */
export const journalEvents = {
  "request.accepted": info("A pool took a request", "provider", "pool", "labels", "nodes", "asked"),
  "request.fulfilled": info("All nodes of a request were delivered", "provider", "pool", "nodes", "ms"),
  "request.declined": info(
    "Pools declined a request, with the reason",
    ...["pools", "reason", "state", "asked"],
  ),
  "request.put-back": info("An accepted request was put back, to be planned again", "why"),
  "request.withdrawn": info("A request was deleted before it was served"),
  "request.lost": warn("A request was given up, because this launcher lost its lock", "error"),
  "request.reset": info("A request that had lost its launcher was put back"),
  "request.waits": debug("Why a request is not served now", "code", "facts", "since", "nextTry"),
  "offering.closed": warn(
    "Launches of a label failed in a row: it is not launched for a while",
    ...["provider", "az", "type", "kind", "error", "failures", "why", "opens", "until"],
  ),
  "offering.open": info(
    "A launch of a label that had failed succeeded: it is launched again",
    ...["provider", "az", "type", "failures", "since"],
  ),
  "label.closed": warn(
    "Launches of a label failed in all places: it is not launched for a while",
    ...["label", "why", "until", "failures", "since", "kind", "error", "hopeless"],
  ),
  "label.open": info(
    "A launch of a label whose budget of failures was spent succeeded: the label is launched again",
    ...["label", "since"],
  ),
  "budget.near": warn("A tenant has spent four fifths of its budget of this month", ...BUDGET_FACTS),
  "budget.used": warn(
    "A tenant has spent its budget of this month: its requests wait, and what runs goes on",
    ...BUDGET_FACTS,
  ),
  "budget.free": info("A tenant's budget has room again: a month began, or it was raised", ...BUDGET_FACTS),
  "node.created": info("The record of a node to be launched was written", "request", "az", "type"),
  "node.registered": info("A host or slot that exists was registered as a ready node", "host"),
  "node.launching": info("A launch attempt began", "attempt", "of", "az", "type"),
  "node.machine": info("The cloud gave the machine of a node its id", "attempt", "server_id"),
  "node.step": info(
    "A step of a launch or deletion ended",
    ...["of", "attempt", "step", "began", "ms", "next", "error", "unreported"],
  ),
  "node.ready": info(
    "A node was made and is ready",
    ...["attempt", "ms", "server_id", "resources", "cost", "steps"],
  ),
  "node.console": kind(null)(
    "The last console output of a machine that did not come up",
    ...["request", "attempt", "cut", "lines"],
  ),
  "node.launch-failed": warn("A launch attempt failed", "node", "request", "attempt", "of", "kind", "error"),
  "node.failed": warn("The launch of a node ended without a machine", "state", "why"),
  "node.given-up": warn("A launch was given up before it ended", "request", "error"),
  "node.claimed": info(
    "A ready node was allocated to a request; `use` counts from 2, for one that was used before",
    ...["request", "use"],
  ),
  "node.suspended": info("A spare was suspended", "ms"),
  "node.woken": info("A suspended spare was woken for a request", "request", "ms", "cost"),
  "node.checked": info(
    "A node that was given back passed its check: it may be used again, for the time that `use` says",
    ...["use", "ms"],
  ),
  "node.check-failed": warn(
    "A node that was given back did not pass its check, and is deleted",
    ...["why", "ms"],
  ),
  "node.in-use": info("The user of a node began to use it", "from"),
  "node.returned": info("The user of a node gave it back", "from", "ms"),
  "node.held": info("A node was put on hold", "from", "ms"),
  "node.deleting": info("The deletion of a node began", "attempt", "from", "why"),
  "node.deleted": info("A node's machine and record are gone", "from"),
  "node.remark": warn("The driver learnt what may explain why a job failed", "remark"),
  "node.delete-failed": warn("An attempt to delete a node failed", "attempt", "error", "retryMs"),
  "node.dead-letter": kind(null)(
    "Many tries to delete a node failed; it is retried rarely",
    ...["provider", "attempts", "error"],
  ),
  "node.vanished": warn("The machine of a ready node was gone; the node is deleted", "server_id"),
  "node.dead": warn("A ready node did not answer and is deleted", "host", "why"),
  "resource.leaked": warn("A resource without a record was deleted", "provider", "type", "id"),
  "backing.requested": info("A backing node was requested", "provider", "label", "backingLabel"),
  "backing.withdrawn": info("A request for a backing node was withdrawn", "why"),
  "backing.adopted": info("A backing node is ready for slots", "provider", "label", "slots", "used"),
  "backing.failed": warn(
    "A backing node gets no new slots, because it does not answer or an operator retired it",
    "label",
  ),
  "backing.released": info("An empty backing node was returned", "provider", "label", "why"),
  "lease.granted": info("Nodes are locked for a lease", "lease", "nodes", "owner", "job"),
  "lease.held": info("A part of a mixed set is held until the others are", "lease", "label", "nodes", "job"),
  "lease.yielded": info(
    "A mixed set gives back what it holds, because an older one waits for it",
    ...["lease", "to", "job"],
  ),
  "lease.failed": info("The request of a lease failed", "lease", "why", "job"),
  "lease.ended": info(
    "A lease was released or expired, and its nodes were returned",
    ...["lease", "nodes", "why", "verdict", "commit", "job"],
  ),
  "api.called": info(
    "A client of the API or a command line changed something, or tried to",
    ...["who", "role", "action", "subject", "why", "status"],
  ),
  "counts.noted": kind(null)(
    "How many nodes and requests there were, every five minutes, for the history of a day",
    ...["nodes", "waiting", "labels", "providers"],
  ),
  "token.changed": info("A token was created or revoked", "token", "role", "state", "by"),
} as const satisfies Readonly<Record<string, EventKind>>;

/** Events of the builder. They are in the log alone: what images did, their records tell. */
export const imageEvents = {
  "build.started": info("Build started", "image", "build", "cause", "formats"),
  "build.ready": info("Build ready", "image", "build", "ms"),
  "build.failed": error("Build failed", "image", "build", "ms", "why", "last_lines"),
  "build.given-up": warn("The build was given up", "build", "error"),
  "build.aborted": error("The build was aborted", "build", "error"),
  "build.abandoned": warn("Marked a build as failed: its builder is gone", "image", "build"),
  "build.deleted": info("Deleted a build", "image", "build"),
  "upload.started": info(
    "Upload started",
    ...["image", "build", "provider", "upload", "name", "bytes", "format"],
  ),
  "upload.ready": info("Upload ready", "image", "build", "provider", "upload", "external_id", "ms"),
  "upload.failed": error("Upload failed", "image", "build", "provider", "upload", "ms", "error"),
  "upload.given-up": warn("The upload was given up", "upload", "error"),
  "upload.aborted": error("The upload was aborted", "upload", "error"),
  "upload.abandoned": warn(
    "Marked an upload as failed: its builder is gone",
    ...["image", "build", "provider", "upload"],
  ),
  "upload.deleted": info("Deleted an upload", "image", "build", "provider", "upload"),
  "trial.started": info("Started the trial of a build", "image", "build", "share"),
  "trial.ended": info("The trial of a build ended", "image", "build", "verdict", "why"),
  "trial.failed": error("A build failed its trial: no new node boots from it", "image", "build", "why"),
} as const satisfies Readonly<Record<string, EventKind>>;

/** Names of events; an interface: `explain` tells a history by them. */
export type JournalEventName = keyof typeof journalEvents;

const events: Readonly<Record<string, EventKind>> = { ...journalEvents, ...imageEvents };
// Made once: a launcher writes several thousand lines a second.
const texts: ReadonlyMap<string, string> = new Map(
  Object.entries(events).map(([event, { meaning }]) => [event, meaning[0]!.toLowerCase() + meaning.slice(1)]),
);

/** Writes the line of an event; `fields` are written as they are, without a copy. */
export function logEvent(
  log: Log,
  fields: { readonly event: JournalEventName | keyof typeof imageEvents; readonly [fact: string]: unknown },
): void {
  const { level } = events[fields.event]!;
  if (level !== null) log[level](fields, texts.get(fields.event)!);
}
