import { verdictMeaning } from "./meaning.ts";
import type { MemberReplies } from "./member-replies.ts";
import type { PoolLine, ReportedHistory, Wait } from "./story.ts";

/** Reasons that say only that it is none of a launcher's business at the moment: any other launcher's reason says more. */
const WEAK: ReadonlySet<string> = new Set([
  "declined.here",
  "yield.capable",
  "pending.elsewhere",
  "pools.none",
  "tree.incomplete",
]);

/** The best reason that live launchers give. A failing provider API counts for more than a launcher without a reason. */
export function liveWait({ asked }: MemberReplies, pools: readonly PoolLine[]): Wait | undefined {
  const waits = asked.answers.flatMap(({ testimony }) => testimony.wait ?? []);
  const strong = waits.find(({ code }) => code === "handling") ?? waits.find(({ code }) => !WEAK.has(code));
  if (strong !== undefined) return waitOf(strong);
  const failing = pools.find(({ code, outlook }) => outlook === "waits" && code === "provider.failing");
  if (failing !== undefined) return fromPool(failing);
  return waits[0] === undefined ? undefined : waitOf(waits[0]);
}

/** What the pool says, as the reason for all of it. */
export function fromPool({ code, facts, since, nextTry, pool }: PoolLine): Wait {
  return waitOf({ code, facts: { pool, ...facts }, since, nextTry });
}

/** The last thing noted of a request, when that is why it waits. */
export function notedWait({ events }: ReportedHistory): Wait | undefined {
  const last = events.findLast(({ event }) => event.startsWith("request."));
  if (last?.event !== "request.waits") return undefined;
  const { code, facts, since, nextTry } = last.facts;
  const known = typeof facts === "object" && facts !== null ? (facts as Wait["facts"]) : {};
  return {
    ...waitOf({
      code: String(code),
      facts: known,
      since: typeof since === "number" ? since : last.at,
      nextTry: typeof nextTry === "number" ? nextTry : null,
    }),
    source: "journal",
  };
}

function waitOf(wait: Pick<Wait, "code" | "facts" | "since" | "nextTry">): Wait {
  const { code, facts, since, nextTry } = wait;
  const meaning = verdictMeaning(code, facts) ?? "A reason that this release does not know";
  return { code, meaning, facts, since, nextTry, source: "launcher" };
}
