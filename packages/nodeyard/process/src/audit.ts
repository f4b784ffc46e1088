import type { Audit, AuditEntry, PastAudit } from "@nodeyard/api";
import { AUDIT, decodeChange, decodeToken, RecordError, readable, TOKENS } from "@nodeyard/model";
import { type FileJournal, type JournalEventName, type Log, logEvent } from "@nodeyard/telemetry";
import type { View, ViewEvent } from "@nodeyard/view";

/**
 * The audit of the API and of command lines: append-only events of the journal, and lines of the log. A command line keeps no journal; a
 * process that sees its change noted in the tree records it, so that each launcher has all of them, and so it does for tokens.
 */
export function openAudit(view: View, journal: FileJournal, log: Log): Audit {
  const write = (event: JournalEventName, facts: Readonly<Record<string, unknown>>) => {
    journal.write({ event, facts });
    logEvent(log, { event, ...facts });
  };
  view.onEvent((event) => {
    // Before the view is complete its events are the tree as it is, not changes.
    const facts = view.complete ? tokenFacts(event) : undefined;
    if (facts !== undefined) write("token.changed", facts);
    const change = view.complete ? changeIn(event) : undefined;
    // Whoever reaches the tree may do everything.
    if (change !== undefined) write("api.called", { ...change, role: "admin" });
  });
  return {
    async write(entry) {
      write("api.called", { ...entry });
      // An empty read is answered after all writes before it.
      await journal.read({});
    },
    async read() {
      const { events } = await journal.latest(["api.called"]);
      return events.map(({ at, facts }): PastAudit => ({ ...(facts as unknown as AuditEntry), at }));
    },
  };
}

/** A change by a command line that was noted just now; undefined for another event, and for a record of a later release. */
function changeIn(event: ViewEvent) {
  if (event.type !== "own" || !event.path.startsWith(`${AUDIT}/`)) return undefined;
  const { before, after } = event;
  return before === undefined && after !== undefined
    ? readable(() => decodeChange(event.path, after.data))
    : undefined;
}

/** Facts of `token.changed`, without the secret's hash. Undefined for another event, and where the token is the same as before. */
function tokenFacts(event: ViewEvent): Readonly<Record<string, unknown>> | undefined {
  if (event.type !== "own" || !event.path.startsWith(`${TOKENS}/`)) return undefined;
  const name = event.path.slice(TOKENS.length + 1);
  if (event.after === undefined) return { token: name, state: "removed" };
  if (event.before?.version === event.after.version) return undefined;
  try {
    const { role, createdBy, revoked, revokedBy } = decodeToken(name, event.after.data);
    return revoked === null
      ? { token: name, role, state: "created", by: createdBy }
      : { token: name, role, state: "revoked", by: revokedBy };
  } catch (error) {
    if (error instanceof RecordError) return { token: name, state: "unreadable" };
    throw error;
  }
}
