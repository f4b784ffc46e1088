import { type Standing, severity } from "@nodeyard/model";
import { iso, textsOf } from "../index.ts";
import { type Column, columns, type Row } from "./columns.ts";

/** Columns of lists of standings: `heading` is that of the names. */
export function standingColumns(heading: string): readonly Column[] {
  return [
    ...columns({ [heading]: "name", Standing: "standing", Since: "since" }),
    { heading: "Why", key: "cause", show: ({ cause, meaning }) => `${cause ?? meaning}` },
    ...columns({ "Next Try": "next_try", "What To Do": "remedy" }),
  ];
}

/** What `--json` shows besides the columns. */
export const standingKeys = ["kind", "provider", "code", "meaning", "next", "because", "members"] as const;

/** A standing for people and programs. Times are points in time, so that a row changes only with what it says. */
export function standingRow(standing: Standing): Row {
  const { id, kind, name, state, code, cause, since, nextTry, because, members, provider } = standing;
  return {
    id,
    kind,
    name,
    provider: kind === "provider" ? name : (provider ?? null),
    standing: state,
    since: iso(since),
    code,
    cause,
    ...textsOf(standing),
    next_try: iso(nextTry),
    because,
    members,
  };
}

/** One standing in a line: what it is, why, and what to do. */
export function standingText({ kind, name, state, cause, ...more }: Standing): string {
  const { meaning, next, remedy } = textsOf({ name, code: more.code });
  const why = cause === null ? "" : `: ${cause}`;
  const todo = [next, remedy].filter((text) => text !== "").join(" ");
  return `${kind} ${name} is ${state}: ${meaning}${why}${todo === "" ? "" : `. ${todo}`}`;
}

/** Those that a person should look at. */
export function needAttention(standings: readonly Standing[]): readonly Standing[] {
  return standings.filter(({ state }) => severity(state) <= severity("degraded"));
}
