export { treeNow } from "@nodeyard/tree";
export * from "./ask-launchers.ts";
export { noteChange } from "./audit.ts";
export { readDeadLetter, retryDeletion } from "./dead-letter.ts";
export * from "./erase.ts";
export * from "./explain/index.ts";
export { readEach, registeredBuilders, registeredPools } from "./explain/tree-facts.ts";
export type * from "./handles.ts";
export * from "./images/index.ts";
export * from "./listing.ts";
export * from "./logins.ts";
export { isMemberSession } from "./member-sessions.ts";
export { askConsole, type ConsoleEnd } from "./node-console.ts";
export {
  deleteNode,
  endHold,
  type Forgotten,
  forgetNode,
  holdNode,
  NodeOperationError,
} from "./node-state.ts";
export * from "./provider-info.ts";
export * from "./request.ts";
export * from "./retire-backing.ts";
export { hashOf } from "./secrets.ts";
export * from "./standings.ts";
export * from "./takeover-facts.ts";
export * from "./tokens.ts";
