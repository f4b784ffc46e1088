import { join } from "node:path";
import { defined, messageOf, type Span, systemClock, systemRandom } from "@nodeyard/runtime";
import { CallBudget } from "../../api/call-budget.ts";
import type { Audit } from "../../api/dispatch.ts";
import { AccountSockets } from "../../api/edge/account-sockets.ts";
import { type AccountServer, accountServer, type Intake, listenTcp } from "../../api/edge/http-server.ts";
import { Reader } from "../../api/edge/reader/reader.ts";
import { createHandler } from "../../api/handler.ts";
import { sharedWithSlivers } from "../../core/capacity.ts";
import { PROFILES } from "../../core/profiles.ts";
import type { State } from "../../core/record.ts";
import { DaemonConfigError } from "../../errors.ts";
import type { BackEnd } from "../../isolation/contract.ts";
import { writeAtomic } from "../../isolation/edge/files.ts";
import { OWN_IDS } from "../../isolation/lxc/names.ts";
import { Manager, type ManagerLog } from "../../manager/manager.ts";
import { httpPlace, httpPost } from "../../sources/edge/http.ts";
import { plcSource } from "../../sources/plc.ts";
import type { Poller } from "../../sources/poller.ts";
import { SignedSource } from "../../sources/signed.ts";
import { nodeFiles } from "../../store/edge/node-files.ts";
import { Store } from "../../store/store.ts";
import { controlAccounts, latest, renderAuthorizedKeys, socketAccounts, tokenCaller } from "../accounts.ts";
import type { DaemonConfig } from "../config.ts";
import { auditFile } from "./audit-file.ts";
import { checkSiblings, linkOf, machineFacts, onlineCores } from "./facts.ts";
import { lockFolder, lockMachine } from "./lock.ts";
import { readSecret, readTls } from "./pem.ts";

/** A running sliver manager with its API and sources. */
export interface Daemon {
  readonly manager: Manager;
  /** Ends sources and API, then tasks. Slivers keep running. */
  close(): Promise<void>;
}

/** Back ends by their names in the configuration. */
export type BackEnds = Readonly<Record<string, (config: DaemonConfig) => BackEnd>>;

/** Folder, in the run folder, of the process that parses calls of slivers or of TCP clients. */
export function readerFolder(whose: string): string {
  return `.reader-${whose}`;
}

/**
 * Starts the sliver manager. `readerProgram` is the file of `sliver-reader`. Rejects with errors that a retry does not resolve, after
 * undoing what it started.
 *
 * The order matters: the locks first, because a second manager must not touch anything; the stored state before the manager; sockets
 * before the first sync, so that an account that exists can call at once; sources last, because a document changes slivers. `close`
 * undoes it in the opposite order, and slivers keep running.
 */
export async function startDaemon(
  config: DaemonConfig,
  backEnds: BackEnds,
  log: ManagerLog,
  readerProgram: string,
  trace?: (span: Span) => void,
): Promise<Daemon> {
  const make = Object.hasOwn(backEnds, config.backEnd) ? backEnds[config.backEnd] : undefined;
  if (make === undefined) {
    const names = Object.keys(backEnds).join(", ") || "none";
    throw new DaemonConfigError(`there is no back end ${JSON.stringify(config.backEnd)}; there is ${names}`);
  }
  const { siblings } = config.machine;
  if (siblings.length > 0) checkSiblings(siblings, await onlineCores());
  await using undo = new AsyncDisposableStack();
  undo.use(lockFolder(config.stateFolder));
  const backEnd = make(config);
  if (backEnd.lockFolder !== undefined) undo.use(lockMachine(backEnd.lockFolder));
  const store = new Store(nodeFiles(config.stateFolder), config.node);
  const state = await loadState(store, config, log);
  const audit = auditFiles(config.stateFolder, log, undo);
  const { cpu, capacity } = sharedWithSlivers(config, await machineFacts(backEnd));
  const profile = PROFILES[config.profile];
  const manager = new Manager({
    node: config.node,
    store,
    state,
    backEnd,
    machine: { ...config.machine, cpu, link: linkOf(config), policy: profile.policy },
    capacity,
    clock: systemClock,
    random: systemRandom,
    log,
    ...defined({ trace }),
    heartbeat: config.heartbeatSeconds * 1000,
    startSpacing: config.startSpacingSeconds * 1000,
    fileOperations,
  });
  undo.defer(() => manager.close());

  const budget = new CallBudget({
    clock: systemClock,
    audit,
    onFlood: () => accounts.call(),
    onFailure: (line) => log.error(line),
  });
  undo.defer(() => budget.flush());
  const handler = createHandler(manager, config.profile, audit);
  const intakeOf = (whose: "slivers" | "tcp"): Intake => {
    const reader = new Reader({
      program: readerProgram,
      folder: join(config.runFolder, readerFolder(whose)),
      uid: OWN_IDS[whose],
      clock: systemClock,
      onFailure: (line) => log.error(line),
    });
    reader.start();
    undo.defer(() => reader.close());
    return { handler, budget, reader };
  };
  const intake = intakeOf("slivers");
  const sockets = new AccountSockets(config.runFolder, (caller) => accountServer(intake, caller));
  await sockets.prepare();
  undo.defer(() => sockets.close());
  const giveAccess = accountAccess(config, manager, sockets, budget);
  // Applied once before any account can flood.
  const accounts = latest(() => giveAccess().catch((error) => log.error(`accounts: ${messageOf(error)}`)));
  await giveAccess();
  undo.defer(() => accounts.end());
  undo.defer(manager.onSync(accounts.call));
  // Slivers and TCP clients have separate parsing processes, so that a sliver that takes over its own cannot read tokens.
  const tcp = config.tcp && (await openTcp(config.tcp, intakeOf("tcp"), manager));
  if (tcp !== undefined) undo.defer(() => closeServer(tcp));

  const sources = sourcesOf(config, manager, log);
  for (const source of sources) undo.defer(() => source.close());
  manager.requestSync();
  for (const source of sources) source.start();
  const kept = undo.move();
  return { manager, close: () => kept.disposeAsync() };
}

/** Separate files, so that many calls of slivers do not rotate the records of root and the launcher away. */
function auditFiles(folder: string, log: ManagerLog, undo: AsyncDisposableStack): Audit {
  const [ours, slivers] = ["audit.log", "audit-slivers.log"].map((name) => {
    const file = auditFile(join(folder, name), (line) => log.error(line));
    undo.defer(() => file.close());
    return file.audit;
  }) as [Audit, Audit];
  return (entry) => (entry.role === "sliver" || entry.role === "anonymous" ? slivers : ours)(entry);
}

/**
 * Lets accounts call: each by a socket of its own, and control accounts by SSH as well. Each call of the function follows the manager's
 * state; calls must not overlap.
 */
function accountAccess(
  { control }: DaemonConfig,
  manager: Manager,
  sockets: AccountSockets,
  budget: CallBudget,
): () => Promise<void> {
  /** The keys that the file holds. */
  let written: string | undefined;
  return async () => {
    const { state } = manager;
    const all = socketAccounts(state, manager.options.backEnd, process.getuid!(), control.uid);
    // A flooding account has no socket for a while, because a refused connection costs the daemon nothing.
    await sockets.apply(all.filter(({ caller }) => !budget.floods(caller)));
    if (control.keysFile === undefined) return;
    const keys = renderAuthorizedKeys(control.forwarder, controlAccounts(state, control.keys));
    if (keys === written) return;
    // sshd reads the file as the control user, so it is readable by all, and written atomically.
    await writeAtomic(control.keysFile, keys, { mode: 0o644 });
    written = keys;
  };
}

/** Operations on files that are under way in this process, and wait for one of its threads or have one. */
function fileOperations(): number {
  return process.getActiveResourcesInfo().filter((kind) => kind.startsWith("FSReq")).length;
}

/** The stored state, with the key set of the configuration where that is newer. */
async function loadState(store: Store, config: DaemonConfig, log: ManagerLog): Promise<State> {
  const { state, damaged } = await store.load();
  for (const name of damaged) log.error(`${config.stateFolder}/${name} cannot be read as a store`);
  if (state.safe) log.info("safe mode: nothing is destroyed before a full document arrives");
  const newer = state.keySet === undefined || state.keySet.version < config.keySet.version;
  return newer ? { ...state, keySet: config.keySet } : state;
}

/** The sources that fetch documents, if configured. An unusable certificate is an error at the start. */
function sourcesOf({ plc, documents, profile }: DaemonConfig, manager: Manager, log: ManagerLog): Poller[] {
  const common = { manager, clock: systemClock, random: systemRandom, log };
  const found: Poller[] = [];
  if (plc !== undefined) {
    const tls = () => readTls("plc", { ca: plc.caFile });
    tls();
    const { session = "", nodeKeyFile } = plc;
    const auth =
      nodeKeyFile === undefined
        ? { session }
        : { nodeId: manager.options.node, key: readSecret("plc.nodeKeyFile", nodeKeyFile) };
    const post = httpPost(plc.url, tls);
    const period = plc.periodSeconds * 1000;
    found.push(plcSource({ ...common, profile: PROFILES[profile], post, auth, period }));
  }
  if (documents !== undefined) {
    const { caFile: ca, certFile: cert, keyFile: key } = documents;
    const tls = () => readTls("documents", { ca, cert, key });
    tls();
    const place = httpPlace(documents, tls);
    found.push(new SignedSource({ ...common, place, period: documents.periodSeconds * 1000 }));
  }
  return found;
}

/** Callers are looked up for each call: an account may have gone, or got another generation, since the token was given. */
function openTcp(
  tcp: NonNullable<DaemonConfig["tcp"]>,
  intake: Intake,
  manager: Manager,
): Promise<AccountServer> {
  const tokens = tcp.tokens.map(({ sha256, account, generation }) => ({
    sha256,
    caller: () => tokenCaller(manager.state, account, generation),
  }));
  return listenTcp(intake, tcp.host, tcp.port, tokens);
}

/** Without waiting for calls: a Watch may last half a minute. */
async function closeServer(server: AccountServer): Promise<void> {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
}
