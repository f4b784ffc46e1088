import { type VerdictCode, verdictCodes } from "../../scheduler/index.ts";
import { type JournalEventName, journalEvents, type PastEvent } from "../../telemetry/index.ts";

/** What an event says, in a line; null for one that only a later release knows. */
export function meaningOf({ event, facts }: Pick<PastEvent, "event" | "facts">): string | null {
  if (event === "request.waits") return verdictMeaning(facts.code);
  return Object.hasOwn(journalEvents, event) ? journalEvents[event as JournalEventName] : null;
}

export function verdictMeaning(code: unknown): string | null {
  return typeof code === "string" && Object.hasOwn(verdictCodes, code)
    ? verdictCodes[code as VerdictCode]
    : null;
}
