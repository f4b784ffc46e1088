/**
 * What an old endpoint can answer with, in the order in which the old server prefers it. HTML is promised and never made: a
 * browser gets the text table.
 */
export const offered = ["text/html", "text/plain", "application/json"] as const;
export type Offered = (typeof offered)[number];

/** A media range of `Accept`. `quality`: 0 to 1; 0 is a refusal. */
interface Range {
  readonly type: string;
  readonly quality: number;
}

/**
 * The offered type that `Accept` prefers; of equal ones the first (docs/contract/operations.md, "Negotiation"). If `Accept` allows none,
 * text: the old server failed with 500, and a table is more useful than a refusal.
 */
export function bestType(accept: string | undefined): Offered {
  const ranges = rangesIn(accept ?? "*/*");
  let best: Offered = "text/plain";
  let quality = 0;
  for (const type of offered) {
    const own = qualityOf(type, ranges);
    if (own > quality) [best, quality] = [type, own];
  }
  return best;
}

/** A table for people, or JSON. */
export function wantsJson(accept: string | undefined): boolean {
  return bestType(accept) === "application/json";
}

/** A weight that is no number from 0 to 1 counts as 0. */
function rangesIn(accept: string): readonly Range[] {
  return accept.split(",").map((part) => {
    const [type = "", ...parameters] = part.split(";").map((piece) => piece.trim().toLowerCase());
    const weight = parameters.find((parameter) => parameter.startsWith("q="));
    const quality = weight === undefined ? 1 : Number(weight.slice(2));
    return { type, quality: quality >= 0 && quality <= 1 ? quality : 0 };
  });
}

/** The most specific range counts (RFC 9110 section 12.5.1). */
function qualityOf(type: Offered, ranges: readonly Range[]): number {
  const whole = `${type.slice(0, type.indexOf("/"))}/*`;
  for (const wanted of [type, whole, "*/*"]) {
    const range = ranges.find((candidate) => candidate.type === wanted);
    if (range !== undefined) return range.quality;
  }
  return 0;
}
