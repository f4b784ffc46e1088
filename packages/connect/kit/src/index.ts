export { RunnerPools } from "./adopt.ts";
export {
  type ConnectConfig,
  connectFile,
  idleField,
  Keys,
  poolFields,
  readConnectConfig,
  runnerFields,
  type Section,
} from "./config.ts";
export { type ConnectParts, startConnectors } from "./connectors.ts";
export { type Facade, facadeFields, openFacade } from "./edge/facade.ts";
export { type HttpAnswer, type HttpCall, httpCall, refusal } from "./edge/http.ts";
export { readKey, readSecret } from "./edge/secret-file.ts";
export { openSsh } from "./edge/ssh.ts";
export { ConnectConfigError, OnNodeError, SystemError } from "./errors.ts";
export { type Connector, type ConnectorKind, type ConnectorParts, connectorKind } from "./kind.ts";
export { type NodeShell, nodeShell, type Program, type ProgramEnd } from "./on-node.ts";
export { type Runner, type RunnerJob, RunnerPool, type RunnerSource, type RunnerWish } from "./runners.ts";
