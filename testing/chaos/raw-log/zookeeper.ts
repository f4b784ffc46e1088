import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { AppliedWrite, Op } from "@nodeyard/tree";
import { wire } from "@nodeyard/zookeeper";
import { madeOp } from "./lines.ts";

/** Transaction types of ZooKeeper's log (zookeeper.jute, "module org.apache.zookeeper.txn"; ZooDefs.OpCode). */
const TXN = {
  create: 1,
  delete: 2,
  setData: 5,
  check: 13,
  multi: 14,
  create2: 15,
  closeSession: -11,
  error: -1,
};
const FILE_HEADER_BYTES = 16;
/** Checksum (8) and length (4) stand before each entry, and one byte of 0x42 behind it. */
const ENTRY_HEADER_BYTES = 12;

/**
 * What a ZooKeeper server did, from its own transaction log: everything that was applied, in order, with the session that
 * did it. The log is the server's `version-2/log.*`; it is synced before anything is acknowledged.
 */
export function readZooKeeperLog(dataDir: string): readonly AppliedWrite[] {
  const folder = join(dataDir, "version-2");
  const files = readdirSync(folder).filter((name) => name.startsWith("log."));
  files.sort((a, b) => Number.parseInt(a.slice(4), 16) - Number.parseInt(b.slice(4), 16));
  return files.flatMap((name) => readFile(readFileSync(join(folder, name))));
}

/**
 * What an ensemble did, from the logs of its members. A leader that dies may have written what no other member received, and a member that
 * was away may have received a snapshot instead of the writes. So, as in ZooKeeper, a write counts if a majority has it in its log.
 */
export function readEnsembleLog(dataDirs: readonly string[]): readonly AppliedWrite[] {
  const seen = new Map<bigint, { write: AppliedWrite; members: number }>();
  for (const dataDir of dataDirs) {
    // A member that came back writes again what it is sent, after what it had.
    const own = new Map(readZooKeeperLog(dataDir).map((write) => [BigInt(write.zxid), write]));
    for (const [zxid, write] of own) {
      const entry = seen.get(zxid) ?? { write, members: 0 };
      entry.members++;
      seen.set(zxid, entry);
    }
  }
  const counted = [...seen].filter(([, { members }]) => members > dataDirs.length / 2);
  return counted.sort(([a], [b]) => (a < b ? -1 : 1)).map(([, { write }]) => write);
}

function readFile(bytes: Buffer): AppliedWrite[] {
  const writes: AppliedWrite[] = [];
  for (let at = FILE_HEADER_BYTES; at + ENTRY_HEADER_BYTES <= bytes.length; ) {
    const length = bytes.readInt32BE(at + 8);
    // The file is filled up with zeros in advance.
    if (length <= 0) break;
    const from = at + ENTRY_HEADER_BYTES;
    const write = readEntry(new wire.JuteReader(bytes.subarray(from, from + length)));
    if (write !== undefined) writes.push(write);
    at = from + length + 1;
  }
  return writes;
}

function readEntry(reader: wire.JuteReader): AppliedWrite | undefined {
  const session = reader.long();
  reader.int();
  const zxid = reader.long();
  const at = reader.longNumber();
  const type = reader.int();
  const ops =
    type === TXN.multi
      ? readMulti(reader)
      : type === TXN.closeSession
        ? readClose(reader)
        : readOne(type, reader);
  if (ops === undefined || ops.length === 0) return undefined;
  const write = { zxid, at, client: `0x${session.toString(16)}`, session, ops, results: [] };
  return type === TXN.closeSession ? { ...write, sessionEnd: true } : write;
}

/** A multi that was refused is in the log too, made of error transactions. */
function readMulti(reader: wire.JuteReader): Op[] | undefined {
  const ops: Op[] = [];
  const count = reader.int();
  for (let index = 0; index < count; index++) {
    const type = reader.int();
    const data = reader.buffer();
    if (type === TXN.error) return undefined;
    ops.push(...readOne(type, new wire.JuteReader(data)));
  }
  return ops;
}

function readClose(reader: wire.JuteReader): Op[] {
  return reader.strings().map((path) => ({ op: "delete", path }));
}

function readOne(type: number, reader: wire.JuteReader): Op[] {
  const nothing = Buffer.alloc(0);
  switch (type) {
    case TXN.create:
    case TXN.create2:
      // The log has the path as made; whether the name came from the counter it does not say.
      return [madeOp("create", reader.string(), reader.buffer(), { sequential: true })];
    case TXN.setData:
      return [readSet(reader)];
    case TXN.delete:
      return [madeOp("delete", reader.string(), nothing)];
    case TXN.check:
      return [madeOp("check", reader.string(), nothing)];
    default:
      return [];
  }
}

/** The log has the version that the set made; whether it was made for the one before, or for any, it does not say. */
function readSet(reader: wire.JuteReader): Op {
  const [path, data] = [reader.string(), reader.buffer()];
  return madeOp("set", path, data, { version: reader.int() - 1 });
}
