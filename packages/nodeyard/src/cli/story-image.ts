import {
  type BuilderLine,
  type BuildLine,
  type ImageLines,
  iso,
  verdictMeaning,
} from "../operations/index.ts";
import { factRow, sinceText } from "./story-values.ts";

/** Builds with their uploads, the newest first, and what each builder makes of the image. `now`: tree time, milliseconds. */
export function imageText({ builds, builders }: ImageLines, now: number): string[] {
  const several = new Set(builders.map(({ member }) => member)).size > 1;
  return [
    ...(builds.length === 0 ? [] : ["", "Builds:", ...builds.flatMap((build) => buildText(build, now))]),
    ...(builders.length === 0
      ? []
      : ["", "Builders:", ...builders.map((line) => builderText(line, several, now))]),
  ];
}

function buildText({ id, state, since, builder, formats, trial, nodes, uploads }: BuildLine, now: number) {
  const facts = [
    ...(formats.length === 0 ? [] : [formats.join(" and ")]),
    ...(builder === null ? [] : [`by ${builder}`]),
    ...(trial === null ? [] : [trial === "on-trial" ? "on trial" : "rolled back: nothing is launched of it"]),
    ...(nodes === 0 ? [] : [`${nodes} ${nodes === 1 ? "node boots" : "nodes boot"} from it`]),
  ];
  const rest = facts.length === 0 ? "" : `, ${facts.join(", ")}`;
  return [
    `  ${id}  ${state}${sinceText(since, now)}${rest}`,
    ...uploads.map((one) => `      ${one.provider} ${one.id}: ${one.state}${sinceText(one.since, now)}`),
  ];
}

function builderText(
  { host, member, kind, provider, code, facts, nextTry }: BuilderLine,
  several: boolean,
  now: number,
): string {
  const who = several ? member : host;
  const what = kind === "build" ? "build" : `upload to ${provider}`;
  const says = verdictMeaning(code, facts) ?? "a reason that this release does not know";
  const row = factRow(facts, now);
  const next = nextTry === null || nextTry <= now ? "" : `; next try ${iso(nextTry)}`;
  return `  ${who}, ${what}: ${says} (${code})${row === "" ? "" : `: ${row}`}${next}`;
}
