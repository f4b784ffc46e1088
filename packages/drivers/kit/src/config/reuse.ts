import { FROM_0, NOT_EMPTY, whole } from "./grammar.ts";
import type { Table } from "./section.ts";
import { choice, integer, OURS, optional, seconds, textOrTexts } from "./words.ts";

const reuseTable = {
  check: textOrTexts(
    "Program on the launcher's machine, with its arguments, without a shell; it learns of the node from its environment. Status 0: the node may be used again; anything else deletes it.",
    { needed: true, like: NOT_EMPTY },
  ).map((words, at, key) => {
    if (words.length === 0) at.error(key, "names no program; write its path");
    return words;
  }),
  "check-timeout": seconds("The program is killed after this time, with its process group.", {
    default: 60,
    like: whole(1),
  }).as("checkMs"),
  times: integer("A node is used again so often at most.", { default: 10, like: whole(1) }),
  hours: integer("It is used again until so long after it was ready for the first time.", {
    default: 24,
    unit: "h",
    like: whole(1),
  })
    .as("forMs")
    .map((hours) => hours * 3_600_000),
  idle: seconds("It is deleted when nobody has taken it for so long.", { default: 600, like: FROM_0 }).as(
    "idleMs",
  ),
  for: choice(
    "`same`: a node is given again only to the tenant and client that had it. `all`: to everybody. A check is no proof against a user who hides from it, so `all` is for users who trust each other.",
    ["same", "all"],
  )
    .as("forAll")
    .map((whom) => whom === "all"),
} satisfies Table;

/** The key `reuse` of a label: nodes that are given back are checked, and used again. */
export const reuseKeys = {
  reuse: optional(
    "A node that was given back is used again after a program has found it good. Absent: it is deleted, as each node of Nodepool is.",
    reuseTable,
  ).accepted(OURS),
};
