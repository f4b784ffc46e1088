import type { Server } from "node:http";
import { join } from "node:path";
import { messageOf, systemClock, systemRandom } from "@nodeyard/runtime";
import { fileAccounts } from "../../accounts/index.ts";
import {
  AccountSockets,
  createHandler,
  Dispatcher,
  listenTcp,
  nativeDialect,
  wireDialect,
} from "../../api/index.ts";
import { type State, sharedWithSlivers } from "../../core/index.ts";
import type { BackEnd } from "../../isolation/index.ts";
import { Manager, type ManagerLog } from "../../manager/index.ts";
import { PROFILES } from "../../profiles/index.ts";
import { httpPlace, httpPost, PlcSource, SignedSource } from "../../sources/index.ts";
import { nodeFiles, Store } from "../../store/index.ts";
import { controlAccounts, socketAccounts, tokenCaller } from "../accounts.ts";
import type { DaemonConfig } from "../config.ts";
import { DaemonConfigError } from "../errors.ts";
import { latest } from "../latest.ts";
import { checkSiblings } from "../siblings.ts";
import { auditFile } from "./audit-file.ts";
import { machineFacts, onlineCores } from "./facts.ts";
import { lockFolder, lockMachine } from "./lock.ts";
import { readTls } from "./pem.ts";

export interface Daemon {
  readonly manager: Manager;
  close(): Promise<void>;
}

export type BackEnds = Readonly<Record<string, (config: DaemonConfig) => BackEnd>>;

/** Starts the sliver manager. Rejects with errors that waiting does not resolve, after undoing what it started. */
export async function startDaemon(
  config: DaemonConfig,
  backEnds: BackEnds,
  log: ManagerLog,
): Promise<Daemon> {
  const make = Object.hasOwn(backEnds, config.backEnd) ? backEnds[config.backEnd] : undefined;
  if (make === undefined) {
    const names = Object.keys(backEnds).join(", ") || "none";
    throw new DaemonConfigError(`there is no back end ${JSON.stringify(config.backEnd)}; there is ${names}`);
  }
  const { siblings } = config.machine;
  if (siblings.length > 0) checkSiblings(siblings, await onlineCores());
  await using undo = new AsyncDisposableStack();
  const lock = lockFolder(config.stateFolder);
  undo.defer(() => lock.release());
  const backEnd = make(config);
  const shared = backEnd.lockFolder === undefined ? undefined : lockMachine(backEnd.lockFolder);
  undo.defer(() => shared?.release());
  const store = new Store(nodeFiles(config.stateFolder), config.node);
  const state = await loadState(store, config, log);
  const audit = auditFile(join(config.stateFolder, "audit.log"), (line) => log.error(line));
  undo.defer(() => audit.close());

  const { cpu, capacity } = sharedWithSlivers(config, await machineFacts(backEnd));
  const profile = PROFILES[config.profile];
  const manager = new Manager({
    node: config.node,
    store,
    state,
    backEnd,
    machine: { ...config.machine, cpu, policy: profile.policy },
    capacity,
    clock: systemClock,
    random: systemRandom,
    log,
    heartbeat: config.heartbeatSeconds * 1000,
    startSpacing: config.startSpacingSeconds * 1000,
  });
  undo.defer(() => manager.close());

  const dispatcher = new Dispatcher(manager, profile, audit.audit);
  const native = nativeDialect(profile.policy.minimums);
  const dialects = { r0: wireDialect(PROFILES.r0), v2: wireDialect(PROFILES.v2), native };
  const handler = createHandler(dispatcher, dialects, config.profile);
  const sockets = new AccountSockets(config.runFolder, handler);
  await sockets.prepare();
  undo.defer(() => sockets.close());
  const { control } = config;
  const keys = control.keysFile === undefined ? undefined : fileAccounts(control.keysFile, control.forwarder);
  const applyAccounts = async (): Promise<void> => {
    await sockets.apply(socketAccounts(manager.state, backEnd, process.getuid!(), control.uid));
    await keys?.apply(controlAccounts(manager.state, control.keys));
  };
  await applyAccounts();
  const reapply = () => applyAccounts().catch((error) => log.error(`accounts: ${messageOf(error)}`));
  const accounts = latest(reapply);
  undo.defer(() => accounts.end());
  undo.defer(manager.onSync(accounts.call));
  const tcp = await openTcp(config, handler, manager);
  if (tcp !== undefined) undo.defer(() => closeServer(tcp));

  const plc = plcSource(config, manager, log);
  if (plc !== undefined) undo.defer(() => plc.close());

  const documents = signedSource(config, manager, log);
  if (documents !== undefined) undo.defer(() => documents.close());

  manager.requestSync();
  plc?.start();
  documents?.start();
  const kept = undo.move();
  return { manager, close: () => kept.disposeAsync() };
}

async function loadState(store: Store, config: DaemonConfig, log: ManagerLog): Promise<State> {
  const { state, damaged } = await store.load();
  for (const name of damaged) log.error(`${config.stateFolder}/${name} cannot be read as a store`);
  if (state.safe) log.info("safe mode: nothing is destroyed before a full document arrives");
  const newer = state.keySet === undefined || state.keySet.version < config.keySet.version;
  return newer ? { ...state, keySet: config.keySet } : state;
}

function plcSource({ plc, profile }: DaemonConfig, manager: Manager, log: ManagerLog): PlcSource | undefined {
  if (plc === undefined) return undefined;
  const tls = () => readTls("plc", { ca: plc.caFile });
  // What cannot be used now is refused now.
  tls();
  return new PlcSource({
    manager,
    profile: PROFILES[profile],
    post: httpPost(plc.url, tls),
    auth: { AuthMethod: "session", session: plc.session },
    clock: systemClock,
    random: systemRandom,
    log,
    period: plc.periodSeconds * 1000,
  });
}

function signedSource(
  { documents }: DaemonConfig,
  manager: Manager,
  log: ManagerLog,
): SignedSource | undefined {
  if (documents === undefined) return undefined;
  const { url, reportUrl, caFile, certFile, keyFile, periodSeconds } = documents;
  const tls = () => readTls("documents", { ca: caFile, cert: certFile, key: keyFile });
  tls();
  const place = httpPlace({ url, ...(reportUrl === undefined ? {} : { reportUrl }) }, tls);
  const period = periodSeconds * 1000;
  return new SignedSource({ manager, place, clock: systemClock, random: systemRandom, log, period });
}

async function openTcp(
  { tcp }: DaemonConfig,
  handler: ReturnType<typeof createHandler>,
  manager: Manager,
): Promise<Server | undefined> {
  if (tcp === undefined) return undefined;
  const tokens = tcp.tokens.map(({ sha256, account, generation }) => ({
    sha256,
    caller: () => tokenCaller(manager.state, account, generation),
  }));
  return listenTcp(handler, tcp.host, tcp.port, tokens);
}

async function closeServer(server: Server): Promise<void> {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
}
