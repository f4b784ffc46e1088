export {
  Controller,
  type ControllerHandles,
  type ControllerSpec,
  KeyedController,
} from "./controller.ts";
export { beforeEffect, fenceOf, guarded, mayAct } from "./effects.ts";
export { Election, type ElectionSite } from "./election.ts";
export { Fence, FenceLost, type Held } from "./fence.ts";
export { HeldRecord, type RecordKind } from "./held-record.ts";
export { announceMember, findInstallation, openInstallation } from "./installation.ts";
export { isInterrupted } from "./interrupted.ts";
export { type MemberIdentity, Membership } from "./membership.ts";
export { poolComponent, Registration } from "./registration.ts";
export { retryInterrupted } from "./retry-interrupted.ts";
export { withRoot } from "./roots.ts";
export { closeQuietly, inTime, observeApi, settledWithin } from "./within.ts";
