import { firstLine, type Standing } from "@nodeyard/model";
import { textsOf } from "../standings.ts";
import { iso } from "./reason.ts";
import type { Story } from "./story.ts";

/** Reasons that only say that no host is free, or that no launcher has an answer: a label that is failing says more. */
const WEAK: ReadonlySet<string> = new Set([
  "nodes.too-few",
  "nodes.none-free",
  "declined.here",
  "pools.none",
  "queue.next",
  "label.unknown",
  "label.unasked",
]);

/** What is waited for, and what is next: of a label that nobody can serve the cause, in place of a reason that says less. */
export function withStanding(
  { waits_for: wait, next }: Pick<Story, "waits_for" | "next">,
  labels: readonly string[],
  standings: readonly Standing[],
): Pick<Story, "waits_for" | "next"> {
  const failing = standings.find(
    ({ kind, name, state }) => kind === "label" && state === "failing" && labels.includes(name),
  );
  if (wait === null || failing === undefined || !WEAK.has(wait.code)) return { waits_for: wait, next };
  const from = standings.find(({ id }) => id === failing.because) ?? failing;
  const texts = textsOf(from);
  return {
    waits_for: {
      code: from.code,
      meaning: texts.meaning,
      since: iso(failing.since),
      source: "launcher",
      facts: { label: failing.name, of: from.id, error: from.cause, hosts: hostsOf(failing.name, standings) },
      next_try: iso(from.nextTry),
    },
    next: [texts.next, texts.remedy].filter((text) => text !== "").join(" "),
  };
}

/** The static hosts that have a label, each with how it stands and why. */
export function hostsOf(label: string, standings: readonly Standing[]): readonly string[] {
  return standings
    .filter(({ kind, labels }) => kind === "host" && labels?.includes(label) === true)
    .map(({ name, state, cause }) => `${name} is ${state}${cause === null ? "" : ` (${firstLine(cause)})`}`);
}
