import { outlookCodes, unknownReasons, verdictCodes } from "@nodeyard/scheduler";
import { type JournalEventName, journalEvents, type PastEvent } from "@nodeyard/telemetry";
import { imageCodes, labelCodes, uploadCodes } from "./codes.ts";

/** One line for an event; null for an event of a later release. */
export function meaningOf({ event, facts }: Pick<PastEvent, "event" | "facts">): string | null {
  if (event === "request.waits") return verdictMeaning(facts.code, factsOf(facts.facts));
  return Object.hasOwn(journalEvents, event) ? journalEvents[event as JournalEventName].meaning : null;
}

const NO_ROOM = "The cloud has no capacity for this label: it is not launched for a while";
/** Why an offering fails, by the kind of the last error. */
const FAILING: Readonly<Record<string, string>> = {
  capacity: NO_ROOM,
  quota: NO_ROOM,
  unsupported: "The cloud does not offer this label's type there: it is not launched there",
  access:
    "The cloud refuses the provider's credentials, or they lack a right: nothing is launched until an operator corrects that",
};

/** What a reason says, in a line: more exactly where its facts tell which of several things it was. */
export function verdictMeaning(code: unknown, facts: Readonly<Record<string, unknown>> = {}): string | null {
  if (typeof code !== "string") return null;
  // A breaker opens for failures of either sort, and what to do differs.
  if (code === "offering.failing" && typeof facts.kind === "string")
    return (
      FAILING[facts.kind] ??
      "Launches of this label failed in a row, not for lack of quota: it is not launched for a while"
    );
  const tables = [verdictCodes, outlookCodes, labelCodes, imageCodes, uploadCodes];
  const known = tables.find((codes) => Object.hasOwn(codes, code));
  return known === undefined ? null : ((known as Readonly<Record<string, string>>)[code] ?? null);
}

/** Why there is no estimate, in a line; null for a reason that only a later release knows. */
export function unknownMeaning(reason: string): string | null {
  return (unknownReasons as Readonly<Record<string, string>>)[reason] ?? null;
}

function factsOf(facts: unknown): Readonly<Record<string, unknown>> {
  return typeof facts === "object" && facts !== null ? (facts as Readonly<Record<string, unknown>>) : {};
}
