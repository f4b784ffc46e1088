// Daemons, and commands that do their work in this process, need launcher, builder and API. All other commands load this file only, which
// takes a third of the processor time off their start.

type Loaded<Work extends (...args: never[]) => unknown> = (
  ...args: Parameters<Work>
) => Promise<Awaited<ReturnType<Work>>>;

const daemon = () => import("./daemon.ts");
const up = () => import("./up.ts");
const backup = () => import("./backup.ts");
const surveys = () => import("./surveys.ts");

/** A launcher on the tree of its configuration (daemon.ts). */
export const startLauncher: Loaded<typeof import("./daemon.ts").startLauncher> = async (...args) =>
  (await daemon()).startLauncher(...args);

/** A builder on the tree of its configuration (daemon.ts). */
export const startBuilder: Loaded<typeof import("./daemon.ts").startBuilder> = async (...args) =>
  (await daemon()).startBuilder(...args);

/** Holds a state folder, and opens the tree in it (up.ts). */
export const openState: Loaded<typeof import("./up.ts").openState> = async (...args) =>
  (await up()).openState(...args);

/** All roles in one process on an embedded tree (up.ts). */
export const startUp: Loaded<typeof import("./up.ts").startUp> = async (...args) =>
  (await up()).startUp(...args);

/** Writes an embedded tree to a file (backup.ts). */
export const backupTree: Loaded<typeof import("./backup.ts").backupTree> = async (...args) =>
  (await backup()).backupTree(...args);

/** Makes an embedded tree of such a file (backup.ts). */
export const restoreTree: Loaded<typeof import("./backup.ts").restoreTree> = async (...args) =>
  (await backup()).restoreTree(...args);

/** Compares clouds with the records (surveys.ts). */
export const surveyLeaks: Loaded<typeof import("./surveys.ts").surveyLeaks> = async (...args) =>
  (await surveys()).surveyLeaks(...args);

/** The same as rows of a list (surveys.ts). */
export const surveyRows: Loaded<typeof import("./surveys.ts").surveyRows> = async (...args) =>
  (await surveys()).surveyRows(...args);
