/** Operation codes of the request header (org.apache.zookeeper.ZooDefs.OpCode of ZooKeeper 3.6 to 3.9). */
export const OpCode = {
  create: 1,
  delete: 2,
  exists: 3,
  getData: 4,
  setData: 5,
  getAcl: 6,
  setAcl: 7,
  getChildren: 8,
  /** Answered when the server has applied what its leader had committed. */
  sync: 9,
  ping: 11,
  getChildren2: 12,
  /** Only within a multi. */
  check: 13,
  multi: 14,
  /** As create, and answered with a Stat. */
  create2: 15,
  /** From 3.5 on: whether there is a watch. */
  checkWatches: 17,
  removeWatches: 18,
  createContainer: 19,
  createTtl: 21,
  /** From 3.6 on, as addWatch and setWatches2. */
  multiRead: 22,
  auth: 100,
  setWatches: 101,
  sasl: 102,
  getEphemerals: 103,
  getAllChildrenNumber: 104,
  setWatches2: 105,
  addWatch: 106,
  /** From 3.7 on. */
  whoAmI: 107,
  closeSession: -11,
} as const;

export type OpCode = (typeof OpCode)[keyof typeof OpCode];

const NAMES = new Map<number, string>(Object.entries(OpCode).map(([name, code]) => [code, name]));

/** The name of an operation, for messages and metrics. */
export function opName(code: number): string {
  return NAMES.get(code) ?? `opcode ${code}`;
}

/** Values of `xid` with a special meaning. Replies with any other xid answer requests in order. */
export const Xid = { event: -1, ping: -2, auth: -4, setWatches: -8 } as const;

/** The `flags` of a create request. */
export const CreateFlag = {
  persistent: 0,
  ephemeral: 1,
  persistentSequential: 2,
  ephemeralSequential: 3,
  container: 4,
  persistentTtl: 5,
  persistentSequentialTtl: 6,
} as const;

/** The `mode` of an addWatch request. */
export const AddWatchMode = { persistent: 0, persistentRecursive: 1 } as const;

/** The `watcherType` of checkWatches and removeWatches. */
export const WatcherType = { children: 1, data: 2, any: 3 } as const;

/** The `type` of a watch event. */
export const EventType = {
  none: -1,
  nodeCreated: 1,
  nodeDeleted: 2,
  nodeDataChanged: 3,
  nodeChildrenChanged: 4,
  dataWatchRemoved: 5,
  childWatchRemoved: 6,
  persistentWatchRemoved: 7,
} as const;

/** The `state` of a watch event. */
export const KeeperState = {
  disconnected: 0,
  syncConnected: 3,
  authFailed: 4,
  connectedReadOnly: 5,
  saslAuthenticated: 6,
  expired: -112,
  closed: 7,
} as const;

/** Error codes of the reply header (org.apache.zookeeper.KeeperException.Code). */
export const ErrorCode = {
  ok: 0,
  systemError: -1,
  runtimeInconsistency: -2,
  dataInconsistency: -3,
  connectionLoss: -4,
  marshallingError: -5,
  unimplemented: -6,
  operationTimeout: -7,
  badArguments: -8,
  newConfigNoQuorum: -13,
  reconfigInProgress: -14,
  unknownSession: -12,
  noNode: -101,
  noAuth: -102,
  badVersion: -103,
  noChildrenForEphemerals: -108,
  nodeExists: -110,
  notEmpty: -111,
  sessionExpired: -112,
  invalidCallback: -113,
  invalidAcl: -114,
  authFailed: -115,
  sessionMoved: -118,
  notReadOnly: -119,
  ephemeralOnLocalSession: -120,
  noWatcher: -121,
  requestTimeout: -122,
  reconfigDisabled: -123,
  sessionClosedRequireSasl: -124,
  quotaExceeded: -125,
  throttledOp: -127,
} as const;
