import { wire } from "@nodeyard/zookeeper";
import type { AccessEntry } from "../engine/index.ts";
import { newZnode, type Znode } from "../engine/znode.ts";
import { MoveRefused } from "./errors.ts";
import { addZnode, adler32, CONTAINER, parentPath, readList, type ZooKeeperState } from "./snapshot.ts";

const { JuteReader, OpCode } = wire;

/** "ZKLG", the first bytes of a log of transactions. */
const MAGIC = 0x5a4b4c47;
const HEADER_BYTES = 16;
/** Types of transactions that no client asks for by this number. */
const Txn = { error: -1, createSession: -10, deleteContainer: 20, reconfig: 16 } as const;

/** What the record of a transaction says beside its own fields. */
interface Happened {
  readonly session: bigint;
  readonly zxid: bigint;
  readonly time: number;
}

/**
 * Applies a log of ZooKeeper 3.4 to 3.9 to the state of an earlier snapshot, as DataTree.processTxn of its server does. ZooKeeper writes snapshots
 * while clients write, so the first transactions may be in the snapshot already: each can be applied twice. A log ends with zeros, or
 * in the middle of an entry that was never acknowledged. Throws MoveRefused where an entry is damaged, unless it is the `last` log, whose end may
 * have been torn, and where transactions are missing before it.
 */
export function applyLog(bytes: Buffer, state: ZooKeeperState, last: boolean): void {
  if (bytes.length < HEADER_BYTES || bytes.readInt32BE(0) !== MAGIC)
    throw new MoveRefused("it is no log of a ZooKeeper");
  for (let at = HEADER_BYTES; at + 12 <= bytes.length; ) {
    const size = bytes.readInt32BE(at + 8);
    const start = at + 12;
    if (size <= 0 || start + size >= bytes.length) return;
    const entry = bytes.subarray(start, start + size);
    if (bytes.readBigInt64BE(at) !== BigInt(adler32(entry))) {
      if (last) return;
      throw new MoveRefused(`the transaction at byte ${at} is damaged, and later logs follow`);
    }
    applyEntry(new JuteReader(entry), state);
    // Each entry ends with a "B".
    at = start + size + 1;
  }
}

function applyEntry(reader: wire.JuteReader, state: ZooKeeperState): void {
  const session = reader.long();
  reader.int();
  const zxid = reader.long();
  const time = reader.longNumber();
  const type = reader.int();
  if (zxid <= state.zxid) return;
  // Within an epoch each number is used.
  if (zxid >> 32n === state.zxid >> 32n && zxid !== state.zxid + 1n)
    throw new MoveRefused(
      `the transactions between 0x${state.zxid.toString(16)} and 0x${zxid.toString(16)} are missing: name dataLogDir, too, if it is another folder`,
    );
  apply(reader, type, { session, zxid, time }, state);
  state.zxid = zxid;
}

function apply(reader: wire.JuteReader, type: number, happened: Happened, state: ZooKeeperState): void {
  const { znodes, sessions } = state;
  switch (type) {
    case OpCode.create:
    case OpCode.create2:
    case OpCode.createContainer:
    case OpCode.createTtl:
      return create(reader, type, happened, znodes);
    case OpCode.delete:
    case Txn.deleteContainer:
      return remove(reader.string(), happened.zxid, znodes);
    case OpCode.setData: {
      const znode = znodes.get(reader.string());
      if (znode === undefined) return;
      znode.data = reader.nullableBuffer();
      znode.version = reader.int();
      znode.mzxid = happened.zxid;
      znode.mtime = happened.time;
      return;
    }
    case OpCode.setAcl: {
      const path = reader.string();
      const list = readList(reader);
      const znode = znodes.get(path);
      if (znode === undefined) return;
      znode.acl = list;
      znode.aversion = reader.int();
      return;
    }
    case OpCode.multi:
      return applyMulti(reader, happened, state);
    case Txn.createSession:
      sessions.set(happened.session, reader.int());
      return;
    case OpCode.closeSession:
      // Newer servers list the znodes that go, older ones leave that to who reads.
      for (const [path, { ephemeralOwner }] of [...znodes])
        if (ephemeralOwner === happened.session) remove(path, happened.zxid, znodes);
      sessions.delete(happened.session);
      return;
    case OpCode.check:
    case Txn.error:
    case Txn.reconfig:
      return;
    default:
      throw new MoveRefused(`it has a transaction of type ${type}, which this release does not know`);
  }
}

/** All of its parts, or none: one that was refused stands there with an error in place of a part. */
function applyMulti(reader: wire.JuteReader, happened: Happened, state: ZooKeeperState): void {
  const parts = Array.from({ length: reader.count(8) }, () => ({
    type: reader.int(),
    body: reader.buffer(),
  }));
  if (parts.some(({ type }) => type === Txn.error)) return;
  for (const { type, body } of parts) apply(new JuteReader(body), type, happened, state);
}

function create(
  reader: wire.JuteReader,
  type: number,
  { session, zxid, time }: Happened,
  znodes: Map<string, Znode>,
): void {
  const path = reader.string();
  const data = reader.nullableBuffer();
  const list: readonly AccessEntry[] = readList(reader);
  const isSimple = type === OpCode.create || type === OpCode.create2;
  const ephemeral = isSimple && reader.bool();
  const created = reader.left >= 4 ? reader.int() : -1;
  const parent = znodes.get(parentPath(path));
  if (parent === undefined) return;
  // The count of the parent's children is in the transaction, for the case that the snapshot has a later one.
  const count = created < 0 ? parent.cversion + 1 : created;
  if (count > parent.cversion) {
    parent.cversion = count;
    parent.pzxid = zxid;
  }
  if (znodes.has(path)) return;
  // One with a time to live is marked in another way, and refused as a container is.
  const owner = !isSimple ? CONTAINER : ephemeral ? session : 0n;
  addZnode(znodes, path, newZnode(data, zxid, time, owner, list));
}

function remove(path: string, zxid: bigint, znodes: Map<string, Znode>): void {
  if (!znodes.delete(path)) return;
  const parent = znodes.get(parentPath(path));
  if (parent === undefined) return;
  parent.children.delete(path.slice(path.lastIndexOf("/") + 1));
  if (zxid > parent.pzxid) parent.pzxid = zxid;
}
