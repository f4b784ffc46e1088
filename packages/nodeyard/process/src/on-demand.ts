// Daemons, and commands that do their work in this process, need launcher, builder and API. All other commands load this file only, which
// takes a third of the processor time off their start.

/** A function whose module is loaded when it is called first. */
function onDemand<Args extends unknown[], Result>(
  load: () => Promise<(...args: Args) => Promise<Result> | Result>,
): (...args: Args) => Promise<Result> {
  return async (...args) => (await load())(...args);
}

/** A launcher on the tree of its configuration (daemon.ts). */
export const startLauncher = onDemand(async () => (await import("./daemon.ts")).startLauncher);
/** A builder on the tree of its configuration (daemon.ts). */
export const startBuilder = onDemand(async () => (await import("./daemon.ts")).startBuilder);
/** Holds a state folder, and opens the tree in it (up.ts). */
export const openState = onDemand(async () => (await import("./up.ts")).openState);
/** All roles in one process on an embedded tree (up.ts). */
export const startUp = onDemand(async () => (await import("./up.ts")).startUp);
/** Writes an embedded tree to a file (backup.ts). */
export const backupTree = onDemand(async () => (await import("./backup.ts")).backupTree);
/** Makes an embedded tree of such a file (backup.ts). */
export const restoreTree = onDemand(async () => (await import("./backup.ts")).restoreTree);
/** Moves an embedded tree to a ZooKeeper (promote.ts). */
export const startPromotion = onDemand(async () => (await import("./promote.ts")).startPromotion);
/** Moves it back (promote.ts). */
export const takeBack = onDemand(async () => (await import("./promote.ts")).takeBack);
/** A launcher that only says what it would do (shadow.ts). */
export const startShadow = onDemand(async () => (await import("./shadow.ts")).startShadow);
/** Follows the move of a provider from one kind of launcher to the other (takeover.ts). */
export const startTakeover = onDemand(async () => (await import("./takeover.ts")).startTakeover);
/** Compares clouds with the records (surveys.ts). */
export const surveyLeaks = onDemand(async () => (await import("./surveys.ts")).surveyLeaks);
/** The same as rows of a list (surveys.ts). */
export const surveyRows = onDemand(async () => (await import("./surveys.ts")).surveyRows);
/** Connectors of other systems (connect.ts). */
export const startConnect = onDemand(async () => (await import("./connect.ts")).startConnect);
