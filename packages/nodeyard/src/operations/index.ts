export { treeNow } from "@nodeyard/tree";
export { askProvider, type LauncherStanding, type ProviderMachines } from "./ask-launchers.ts";
export { readDeadLetter, retryDeletion } from "./dead-letter.ts";
export { type Erased, eraseProvider } from "./erase.ts";
export * from "./explain/index.ts";
export { registeredBuilders, registeredPools } from "./explain/tree-facts.ts";
export {
  type Following,
  followLease,
  type LeaseProgress,
  youngestNode,
} from "./follow-lease.ts";
export { type FollowedNodes, followNodes } from "./follow-nodes.ts";
export type { OperationHandles } from "./handles.ts";
export * from "./images/index.ts";
export * from "./listing.ts";
export { checkLogin, createLogin, csrfOf, endLogin, loginId } from "./logins.ts";
export { deleteNode, endHold, holdNode, NodeOperationError } from "./node-state.ts";
export {
  knownProviders,
  type ProviderInfo,
  providerInfo,
  serversOf,
  type UploadedImage,
  unofferedLabels,
} from "./provider-info.ts";
export {
  type AskOptions,
  askForNodes,
  askForNodesOnce,
  keepLease,
  LeaseError,
  releaseLease,
} from "./request.ts";
export { LEFT_MS, retireBacking, retireNode, SlotError } from "./retire-backing.ts";
export { hashOf } from "./secrets.ts";
export { type MoveLine, type MoveSurvey, surveyMove } from "./survey-move.ts";
export {
  checkToken,
  createToken,
  listTokens,
  type NewToken,
  revokeToken,
  TokenError,
  tokenName,
  validToken,
} from "./tokens.ts";
