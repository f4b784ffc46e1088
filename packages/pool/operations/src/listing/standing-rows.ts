import { type Standing, severity, standingKinds, standingStates } from "@nodeyard/model";
import { iso, textsOf } from "../index.ts";
import { type Column, columns, jsonOnly } from "./columns.ts";
import { about, type Fields, maybe, moment, oneOf, text, texts } from "./fields.ts";

/** A standing, for programs. Times are points in time, so that a row changes only with what it says. */
export const standingFields: Fields<Standing> = {
  id: [text, ({ id }) => id],
  kind: [oneOf(standingKinds), ({ kind }) => kind],
  name: [text, ({ name }) => name],
  provider: [maybe, ({ kind, name, provider }) => (kind === "provider" ? name : (provider ?? null))],
  standing: [
    about(
      oneOf(standingStates),
      "degraded: a part of it cannot be used, or not as it is configured; unknown: not tried yet",
    ),
    ({ state }) => state,
  ],
  since: [moment, ({ since }) => iso(since)],
  code: [about(text, "why, for programs; never renamed"), ({ code }) => code],
  meaning: [text, (standing) => textsOf(standing).meaning],
  cause: [about(maybe, "the first line of the error of the far end"), ({ cause }) => cause],
  next: [about(text, "what happens next by itself"), (standing) => textsOf(standing).next],
  next_try: [moment, ({ nextTry }) => iso(nextTry)],
  remedy: [about(text, "what a person can do"), (standing) => textsOf(standing).remedy],
  because: [about(maybe, "id of the standing that this one follows from"), ({ because }) => because],
  members: [about(texts, "hosts of the launchers and builders that say so"), ({ members }) => members],
};

/** Columns of lists of standings: `heading` is that of the names. */
export function standingColumns(heading: string): readonly Column[] {
  return [
    ...columns({ [heading]: "name", Standing: "standing", Since: "since" }),
    { heading: "Why", key: "cause", show: ({ cause, meaning }) => `${cause ?? meaning}` },
    ...columns({ "Next Try": "next_try", "What To Do": "remedy" }),
  ];
}

/** What `--json` shows besides the columns. */
export const standingJson = jsonOnly("kind", "provider", "code", "meaning", "next", "because", "members");

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
