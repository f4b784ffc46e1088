import type { Explanation } from "@nodeyard/operations";
import { counted } from "@nodeyard/runtime";
import { factRow, sinceText, tryText, UNKNOWN_REASON } from "./story-values.ts";

type ImageLines = NonNullable<Explanation["image"]>;

/** Builds with their uploads, the newest first, and what each builder makes of the image. `now`: tree time, milliseconds. */
export function imageText({ builds, builders }: ImageLines, now: number): string[] {
  // Two builders on one host are told apart by their members' names.
  const several = new Set(builders.map(({ member }) => member)).size > 1;
  return [
    ...(builds.length === 0 ? [] : ["", "Builds:", ...builds.flatMap((build) => buildText(build, now))]),
    ...(builders.length === 0
      ? []
      : ["", "Builders:", ...builders.map((line) => builderText(line, several, now))]),
  ];
}

/** A build in one line, its uploads beneath. */
function buildText(
  { id, state, since, builder, formats, trial, nodes, uploads }: ImageLines["builds"][number],
  now: number,
) {
  const facts = [
    ...(formats.length === 0 ? [] : [formats.join(" and ")]),
    ...(builder === null ? [] : [`by ${builder}`]),
    ...(trial === null ? [] : [trial === "on-trial" ? "on trial" : "rolled back: nothing is launched of it"]),
    ...(nodes === 0 ? [] : [`${counted(nodes, "node boots", "nodes boot")} from it`]),
  ];
  const rest = facts.length === 0 ? "" : `, ${facts.join(", ")}`;
  return [
    `  ${id}  ${state}${sinceText(since, now)}${rest}`,
    ...uploads.map((one) => `      ${one.provider} ${one.id}: ${one.state}${sinceText(one.since, now)}`),
  ];
}

/** What one builder says of its work: `next_try` is ISO 8601, null where only an event wakes it. */
function builderText(
  { host, member, work, provider, code, meaning, facts, next_try }: ImageLines["builders"][number],
  several: boolean,
  now: number,
): string {
  const who = several ? member : host;
  const what = work === "build" ? "build" : `upload to ${provider}`;
  const { last_lines: _, ...others } = facts;
  const row = factRow(others, now);
  const at = tryText(next_try, now);
  const next = at && `; next try ${at}`;
  return `  ${who}, ${what}: ${meaning ?? UNKNOWN_REASON} (${code})${row === "" ? "" : `: ${row}`}${next}`;
}
