import { existsSync, linkSync, rmSync } from "node:fs";
import type { Stat } from "../../contract.ts";
import { DataTree, type ZnodeRow } from "../../engine/index.ts";
import { fromRow, toRow } from "../../engine/znode.ts";
import type { Stopped } from "../../moving/edge/data-folder.ts";
import { MoveRefused } from "../../moving/errors.ts";
import { zooKeeperPassword } from "../../moving/passwords.ts";
import type { ZooKeeperState } from "../../moving/snapshot.ts";
import { Refusal, refused } from "../errors.ts";
import type { SessionRow } from "../store.ts";
import { readOpenings } from "./openings.ts";
import { replaceTree } from "./restore.ts";
import { SqliteFile } from "./sqlite-file.ts";
import { prepareFolder, readPid } from "./state-folder.ts";

/** The tree of a state folder that goes to a ZooKeeper. Nobody else can open it until it is closed. */
export interface LeavingTree {
  /** Without the sessions of the process that had the tree: they ended with it, and their ephemeral znodes are gone. */
  readonly state: ZooKeeperState;
  /** What each znode is, by its path, to be compared with what has arrived. */
  readonly stats: ReadonlyMap<string, Stat>;
  /** The secret of each session, by its id. */
  readonly passwords: ReadonlyMap<bigint, Uint8Array>;
  /** Wall time in milliseconds, if it has moved before. */
  readonly movedAt: number | undefined;
  /** From now on the tree is refused in this folder, after a crash, too. */
  leave(): void;
  close(): void;
}

/** Opens the tree of a state folder that moves away, or has moved. Throws StoreRefused, as the opening of a tree, and MoveRefused. */
export function openLeaving(folder: string, nowMs: number): LeavingTree {
  const file = opened(folder);
  try {
    const movedAt = file.movedAt();
    const { znodes, sessions, zxid } = file.read(nowMs, "accepted");
    const tree = new DataTree();
    tree.load(znodes, zxid);
    for (const { id, kind } of sessions) if (kind === "process") tree.endSession(id);
    const staying = sessions.filter(({ kind }) => kind === "wire");
    return {
      state: {
        zxid: tree.zxid,
        znodes: new Map(walk(tree).map((path) => [path, fromRow(tree.row(path)!)])),
        sessions: new Map(staying.map(({ id, timeoutMs }) => [id, timeoutMs])),
      },
      stats: new Map(walk(tree).map((path) => [path, tree.stat(path)!])),
      passwords: new Map(staying.map(({ id, password }) => [id, password])),
      movedAt,
      leave: () => file.moveAway(nowMs),
      close: () => file.close(),
    };
  } catch (error) {
    file.close();
    throw error;
  }
}

/**
 * Makes a tree that a ZooKeeper had the tree of a state folder, whose own tree has moved, or which has none. What it replaces stays beside it,
 * as `tree.sqlite.moved`. Throws MoveRefused where the folder has a tree that has not moved, or the ZooKeeper never had the one that did, and
 * StoreRefused.
 */
export function putBack(folder: string, { state, snapshot }: Stopped, nowMs: number): void {
  const { file } = prepareFolder(folder);
  const former = existsSync(file) ? formerOf(folder, nowMs) : undefined;
  if (former !== undefined && state.zxid < former.state.zxid)
    throw new MoveRefused(
      `the ZooKeeper's data ends before the tree moved there (zxid 0x${state.zxid.toString(16)}, and the tree had 0x${former.state.zxid.toString(16)}): name the dataDir of the one that started on it`,
    );
  if (snapshot !== undefined && snapshot !== former?.state.zxid)
    throw new MoveRefused("there is no log of transactions beside the snapshot: name dataLogDir, too");
  const { znodes, sessions, zxid } = state;
  const puts: ZnodeRow[] = [...znodes].map(([path, znode]) => toRow(path, znode));
  // A client that came by the forwarder still knows the secret that it got here.
  const sessionPuts = [...sessions].map(
    ([id, timeoutMs]): SessionRow => ({
      id,
      kind: "wire",
      timeoutMs,
      password: former?.passwords.get(id) ?? zooKeeperPassword(id),
    }),
  );
  replaceTree(folder, (partial) => {
    const made = SqliteFile.open(partial);
    made.fill({ zxid, puts, deletes: [], sessionPuts, sessionDeletes: [] }, readOpenings(file));
    made.close();
    if (former === undefined) return;
    rmSync(`${file}.moved`, { force: true });
    linkSync(file, `${file}.moved`);
  });
}

/** Before anything is read, and so counted: a folder whose tree is here stays as it is. */
function formerOf(folder: string, nowMs: number): LeavingTree {
  const file = opened(folder);
  const movedAt = file.movedAt();
  file.close();
  if (movedAt === undefined)
    throw new MoveRefused(
      `the state folder ${folder} has a tree that has not moved, and that would be lost: name another with --state DIR`,
    );
  const leaving = openLeaving(folder, nowMs);
  leaving.close();
  return leaving;
}

function opened(folder: string): SqliteFile {
  try {
    return SqliteFile.open(prepareFolder(folder).file);
  } catch (error) {
    if (error instanceof Refusal) throw refused(error.kind, error.message, folder, readPid(folder));
    throw error;
  }
}

/** All paths, each before its children. */
function walk(tree: DataTree): string[] {
  const paths = ["/"];
  // The array grows while it is walked.
  for (const path of paths)
    for (const name of tree.children(path) ?? []) paths.push(path === "/" ? `/${name}` : `${path}/${name}`);
  return paths;
}
