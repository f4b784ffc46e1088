// Operations on sliver hosts for operators.

export { type BundlePaths, openBundle } from "./edge/bundle.ts";
export { controlClient, localRemote, type SshLogin, sshRemote } from "./edge/ssh-remote.ts";
export { type Enrolled, type EnrolWish, enrolSettings } from "./enrolment.ts";
export { SliverHostError } from "./errors.ts";
export { type InstallOrder, installSliverd, type UninstallOrder, uninstallSliverd } from "./install.ts";
export type { Bundle, Remote } from "./remote.ts";
