import {
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { messageOf, syncPathSync } from "@nodeyard/runtime";
import { ProtocolError } from "@nodeyard/zookeeper";
import { MoveRefused } from "../errors.ts";
import { decodeSnapshot, encodeSnapshot, settle, type ZooKeeperState } from "../snapshot.ts";
import { applyLog } from "../txn-log.ts";

/** The folder in a data folder that has the files of this format. */
const FILES = "version-2";

/**
 * Writes a state as the snapshot of a ZooKeeper that has never run, in its data folder (`dataDir`), with the owner of that folder. The
 * file appears whole, or not at all. Throws MoveRefused where the folder is missing or has data.
 */
export function writeDataFolder(folder: string, state: ZooKeeperState): void {
  const owner = statSync(folder, { throwIfNoEntry: false });
  if (owner?.isDirectory() !== true)
    throw new MoveRefused(`there is no folder ${folder}: name the dataDir of the new ZooKeeper`);
  const files = join(folder, FILES);
  if (existsSync(files) && readdirSync(files).length > 0)
    throw new MoveRefused(`${files} has data already: name the dataDir of a ZooKeeper that has never run`);
  mkdirSync(files, { recursive: true });
  const path = join(files, `snapshot.${state.zxid.toString(16)}`);
  writeFileSync(`${path}.partial`, encodeSnapshot(state));
  chownSync(files, owner.uid, owner.gid);
  chownSync(`${path}.partial`, owner.uid, owner.gid);
  syncPathSync(`${path}.partial`);
  renameSync(`${path}.partial`, path);
  syncPathSync(files);
  syncPathSync(folder);
}

/**
 * Reads what a ZooKeeper that is stopped has in its folders (`dataDir`, and `dataLogDir` if that is another): its newest whole snapshot, and
 * all transactions since then. Throws MoveRefused where there is none, or something that the embedded tree has not.
 */
export function readDataFolder(folders: readonly string[]): Stopped {
  const found = folders.flatMap((folder) => filesOf(join(folder, FILES)));
  const state = newest(
    found.filter(({ kind }) => kind === "snapshot"),
    folders,
  );
  const snapshot = state.zxid;
  const logs = found.filter(({ kind }) => kind === "log").sort(byZxid);
  for (const { path } of logs)
    inFile(path, () => applyLog(readFileSync(path), state, path === logs.at(-1)?.path));
  settle(state);
  return { state, snapshot: logs.length === 0 ? snapshot : undefined };
}

/** What a stopped ZooKeeper had. */
export interface Stopped {
  readonly state: ZooKeeperState;
  /** The zxid of its snapshot, where it has no log: then it has written nothing since, or its log is elsewhere. */
  readonly snapshot: bigint | undefined;
}

interface DataFile {
  readonly kind: string;
  readonly zxid: bigint;
  readonly path: string;
}

function filesOf(folder: string): DataFile[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder).flatMap((name) => {
    const [, kind, zxid] = /^(snapshot|log)\.([0-9a-f]+)$/.exec(name) ?? [];
    return kind === undefined ? [] : [{ kind, zxid: BigInt(`0x${zxid}`), path: join(folder, name) }];
  });
}

/** A server that was killed while it wrote a snapshot leaves a part of one, which it passes over itself. */
function newest(snapshots: readonly DataFile[], folders: readonly string[]): ZooKeeperState {
  let failure: unknown;
  for (const { path, zxid } of [...snapshots].sort(byZxid).reverse()) {
    try {
      return inFile(path, () => decodeSnapshot(readFileSync(path), zxid));
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      failure ??= error;
    }
  }
  throw new MoveRefused(
    `${folders.join(" and ")} have no snapshot that can be read${failure === undefined ? "" : ` (${messageOf(failure)})`}: name the dataDir of a ZooKeeper that is stopped`,
    failure,
  );
}

/** Errors name the file, except for a damage, which is told once for all. */
function inFile<T>(path: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof ProtocolError) throw error;
    throw new MoveRefused(`${path}: ${messageOf(error)}`, error);
  }
}

function byZxid(a: DataFile, b: DataFile): number {
  return a.zxid < b.zxid ? -1 : 1;
}
