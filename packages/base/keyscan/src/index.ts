export type {
  Address,
  Connect,
  Resolve,
  Scanner,
  ScanResult,
  ScanTarget,
  Wire,
} from "./contract.ts";
export { createScanner, type ScannerOptions } from "./edge/create.ts";
export {
  HostKeyProofError,
  KeyscanError,
  NoCommonAlgorithmError,
  ScanProtocolError,
  ScanQueueFullError,
  ScanTimeoutError,
} from "./errors.ts";
export type { ScannerLimits } from "./scanner.ts";
