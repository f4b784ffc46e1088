export type { BackingHost, SlotLogin } from "./backing-host.ts";
export { sliverAccess } from "./edge/access.ts";
export { type BundlePaths, openBundle } from "./edge/bundle.ts";
export { controlClient, type SshLogin, sshRemote } from "./edge/ssh-remote.ts";
export { type Enrolled, type EnrolWish, enrolSettings } from "./enrolment.ts";
export { SliverHostError } from "./errors.ts";
export { type InstallOrder, installSliverd, type UninstallOrder, uninstallSliverd } from "./install.ts";
export { isolationOf, isolationTable } from "./label.ts";
export { type SliverPaths, sliverPaths } from "./places.ts";
export type { Bundle, Remote } from "./remote.ts";
export { type ShownSliver, shownSlivers } from "./shown.ts";
export {
  type SliverAccess,
  type SlotIsolation,
  SlotSlivers,
} from "./slot-slivers.ts";
