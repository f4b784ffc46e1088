import { ProtocolError, wire } from "@nodeyard/zookeeper";
import { resolveAccess } from "../engine/access.ts";
import { type AccessEntry, type AccessList, entriesOf, TRUSTED } from "../engine/index.ts";
import { newZnode, type Znode } from "../engine/znode.ts";
import { MoveRefused } from "./errors.ts";

const { JuteReader, JuteWriter } = wire;

/** All of a ZooKeeper at one moment, as its files have it. */
export interface ZooKeeperState {
  zxid: bigint;
  /** By path, "/" included; a parent comes before its children. */
  readonly znodes: Map<string, Znode>;
  /** The timeout of each session in milliseconds, by its id. */
  readonly sessions: Map<bigint, number>;
}

/** "ZKSN", the first bytes of a snapshot. */
const MAGIC = 0x5a4b534e;
const VERSION = 2;
/** In the place of an owner: a container. */
export const CONTAINER = -(1n << 63n);
/** In place of the number of an access list: everything for everybody. */
const OPEN_LIST = -1n;
/** ZooKeeper's own znodes, which each server must find. */
const OWN = "/zookeeper";
const QUOTAS = `${OWN}/quota`;
/** Bytes of the shortest list, session and entry of a list. */
const LEAST = { list: 12, session: 12, entry: 12 };

/**
 * A snapshot in the format of ZooKeeper 3.5 to 3.9, as FileSnap and DataTree of its server read it: a header, sessions, access lists, znodes
 * (a parent before its children), and an Adler-32 of all that.
 */
export function encodeSnapshot({ znodes, sessions }: ZooKeeperState): Buffer {
  const writer = new JuteWriter();
  writer.int(MAGIC);
  writer.int(VERSION);
  writer.long(-1n);
  writer.int(sessions.size);
  for (const [id, timeoutMs] of sessions) {
    writer.long(id);
    writer.int(timeoutMs);
  }
  const lists = new Map<string, bigint>();
  const numbers = new Map<AccessList, bigint>([[undefined, OPEN_LIST]]);
  for (const { acl } of znodes.values()) {
    if (acl === undefined) continue;
    const text = JSON.stringify(acl.map(({ perms, scheme, id }) => [perms, scheme, id]));
    if (!lists.has(text)) lists.set(text, BigInt(lists.size + 1));
    numbers.set(acl, lists.get(text)!);
  }
  writer.int(lists.size);
  const written = new Set<bigint>();
  for (const [list, number] of numbers) {
    if (list === undefined || written.has(number)) continue;
    written.add(number);
    writer.long(number);
    writeList(writer, entriesOf(list));
  }
  for (const [path, znode] of znodes)
    writeZnode(writer, path === "/" ? "" : path, znode, numbers.get(znode.acl)!);
  const own = newZnode(new Uint8Array(0), 0n, 0, 0n, undefined);
  for (const path of [OWN, QUOTAS]) writeZnode(writer, path, own, OPEN_LIST);
  writer.string("/");
  writer.long(BigInt(adler32(writer.written())));
  writer.string("/");
  return Buffer.from(writer.written());
}

/**
 * Reads a snapshot of the zxid that its file's name has. Throws ProtocolError where it is damaged or no snapshot.
 */
export function decodeSnapshot(bytes: Buffer, zxid: bigint): ZooKeeperState {
  const reader = new JuteReader(bytes);
  if (reader.int() !== MAGIC || reader.int() !== VERSION)
    throw new ProtocolError("no snapshot of a ZooKeeper");
  reader.long();
  const sessions = new Map<bigint, number>();
  for (let left = reader.count(LEAST.session); left > 0; left--) sessions.set(reader.long(), reader.int());
  const lists = new Map<bigint, readonly AccessEntry[]>();
  for (let left = reader.count(LEAST.list); left > 0; left--) lists.set(reader.long(), readList(reader));
  const znodes = new Map<string, Znode>();
  for (let path = reader.string(); path !== "/"; path = reader.string()) {
    addZnode(znodes, path === "" ? "/" : path, readZnode(reader, lists));
  }
  const end = reader.offset;
  if (reader.long() !== BigInt(adler32(bytes.subarray(0, end)))) throw new ProtocolError("a wrong checksum");
  return { zxid, znodes, sessions };
}

/**
 * Makes it a state that the embedded tree can have, when all logs are applied: without ZooKeeper's own znodes. Throws MoveRefused for what would
 * be lost (quotas, containers, times to live), and InvalidAccessList.
 */
export function settle({ znodes }: ZooKeeperState): void {
  for (const [path, znode] of znodes) {
    if (path.startsWith(`${QUOTAS}/`))
      throw new MoveRefused(
        `it limits znodes (${path}), which the embedded tree cannot do: remove the quota first`,
      );
    if (path === OWN || path.startsWith(`${OWN}/`)) znodes.delete(path);
    else if (isMarked(znode.ephemeralOwner))
      throw new MoveRefused(
        `${path} is a container or has a time to live, which the embedded tree has not: remove it first`,
      );
    else znode.acl = znode.acl && resolveAccess(path, znode.acl, TRUSTED);
  }
  znodes.get("/")?.children.delete(OWN.slice(1));
}

/** In the place of an owner ZooKeeper marks containers and znodes with a time to live. */
function isMarked(owner: bigint): boolean {
  return owner < 0n && (BigInt.asUintN(64, owner) >> 56n === 0xffn || owner === CONTAINER);
}

/** Adds a znode, also to the children of its parent, if it has one. */
export function addZnode(znodes: Map<string, Znode>, path: string, znode: Znode): void {
  znodes.set(path, znode);
  if (path !== "/") znodes.get(parentPath(path))?.children.add(path.slice(path.lastIndexOf("/") + 1));
}

export function parentPath(path: string): string {
  return path.slice(0, Math.max(1, path.lastIndexOf("/")));
}

function writeZnode(writer: wire.JuteWriter, path: string, znode: Znode, list: bigint): void {
  writer.string(path);
  writer.buffer(znode.data);
  writer.long(list);
  writer.long(znode.czxid);
  writer.long(znode.mzxid);
  writer.longNumber(znode.ctime);
  writer.longNumber(znode.mtime);
  writer.int(znode.version);
  writer.int(znode.cversion);
  writer.int(znode.aversion);
  writer.long(znode.ephemeralOwner);
  writer.long(znode.pzxid);
}

function readZnode(reader: wire.JuteReader, lists: ReadonlyMap<bigint, readonly AccessEntry[]>): Znode {
  const data = reader.nullableBuffer();
  const acl = lists.get(reader.long());
  const [czxid, mzxid, ctime, mtime] = [
    reader.long(),
    reader.long(),
    reader.longNumber(),
    reader.longNumber(),
  ];
  const [version, cversion, aversion] = [reader.int(), reader.int(), reader.int()];
  const [ephemeralOwner, pzxid] = [reader.long(), reader.long()];
  const kept = { data, acl, czxid, mzxid, ctime, mtime, version, cversion, aversion, ephemeralOwner, pzxid };
  return { ...kept, children: new Set() };
}

function writeList(writer: wire.JuteWriter, entries: readonly AccessEntry[]): void {
  writer.int(entries.length);
  for (const { perms, scheme, id } of entries) {
    writer.int(perms);
    writer.string(scheme);
    writer.string(id);
  }
}

export function readList(reader: wire.JuteReader): readonly AccessEntry[] {
  return Array.from({ length: reader.count(LEAST.entry) }, () => ({
    perms: reader.int(),
    scheme: reader.string(),
    id: reader.string(),
  }));
}

/** RFC 1950, section 8. The sums stay below 2^53 for this many bytes, so that not each byte costs a division. */
export function adler32(bytes: Uint8Array): number {
  const STRETCH = 4096;
  let [low, high] = [1, 0];
  for (let at = 0; at < bytes.length; ) {
    const end = Math.min(at + STRETCH, bytes.length);
    for (; at < end; at++) {
      low += bytes[at]!;
      high += low;
    }
    low %= 65521;
    high %= 65521;
  }
  return high * 65536 + low;
}
