import type { ShadowAnswer, TreeAnswer } from "./answers.ts";

/** How the launcher in shadow and the launchers of the tree differ over a request. Codes are stable: programs read them. */
export const shadowDifferences = {
  pool: "another pool has served it",
  reuse: "another number of its nodes were ready before it came",
  refused_here: "declined here, and served there",
  refused_there: "served here, and declined there",
  refused_early: "declined there before it was served here",
  launch_failed: "its launches failed there, which nobody could know",
  waits: "taken there while it would still wait here",
  undecided: "taken there before anything was decided here",
} as const;

/** A code of `shadowDifferences`. */
export type ShadowDifferenceCode = keyof typeof shadowDifferences;

/** One difference. */
export interface ShadowDifference {
  readonly code: ShadowDifferenceCode;
  /** A row of docs/design/differences.md, by its first words: it is meant to be so. Null: none says so. */
  readonly documented: string | null;
}

/** Rows of docs/design/differences.md, by their first words. */
export const documentedRows = {
  hosts: "static: a free host goes to whichever request comes first",
  room: "a request that waits for capacity is `pending` and locked",
  shares: "requests of one priority are served by age",
  preferred: "a request waits for ever for a better pool or a preferred provider",
  restart: "a request for a label fails if its launcher is restarted",
  image: "a request is declined if an image is missing",
  pools: "of several pools whichever locks a request first",
} as const;

/** Why a request waits here that others serve, by the code of its verdict, where that is meant to be. */
const INTENDED_WAITS: Readonly<Record<string, string>> = {
  "nodes.none-free": documentedRows.hosts,
  "nodes.too-few": documentedRows.hosts,
  "capacity.reserved": documentedRows.room,
  "queue.behind": documentedRows.room,
  "queue.share": documentedRows.shares,
  "yield.provider": documentedRows.preferred,
  "yield.priority": documentedRows.preferred,
  "offer.awaited": documentedRows.restart,
};
/** Why a request waits here that others decline, likewise. */
const INTENDED_PATIENCE: Readonly<Record<string, string>> = {
  "capacity.provider": documentedRows.image,
  "capacity.refused": documentedRows.image,
  "image.waits": documentedRows.image,
  "offer.awaited": documentedRows.restart,
};

/** Compares what both did. Withdrawn requests differ in nothing: who asked was first. */
export function differencesOf(here: ShadowAnswer, there: TreeAnswer): readonly ShadowDifference[] {
  if (there.result === "withdrawn") return [];
  const one = (code: ShadowDifferenceCode, documented: string | null = null) => [{ code, documented }];
  if (there.result === "refused") {
    if (here.result === "refused") return [];
    if (there.launched > 0) return one("launch_failed");
    if (here.result === "served") return one("refused_there");
    return one("refused_early", INTENDED_PATIENCE[here.reason ?? ""] ?? null);
  }
  switch (here.result) {
    case "refused":
      return one("refused_here");
    case "waits":
      return one("waits", INTENDED_WAITS[here.reason ?? ""] ?? null);
    case "undecided":
      return one("undecided");
    case "served":
      return [
        ...(here.pool === there.pool ? [] : one("pool", documentedRows.pools)),
        ...(here.reused === there.reused ? [] : one("reuse")),
      ];
  }
}
