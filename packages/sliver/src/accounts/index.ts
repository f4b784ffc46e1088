export { renderAuthorizedKeys } from "./authorized-keys.ts";
export type { ControlAccount, ControlAccounts } from "./contract.ts";
export { fileAccounts } from "./edge/file-accounts.ts";
export { ForwarderPathError } from "./errors.ts";
