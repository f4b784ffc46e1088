import type { Acl, ClientInfo, Stat, WatcherEvent } from "./messages.ts";
import type { JuteReader } from "./reader.ts";
import type { JuteWriter } from "./writer.ts";

export function writeStat(w: JuteWriter, stat: Stat): void {
  w.long(stat.czxid);
  w.long(stat.mzxid);
  w.longNumber(stat.ctime);
  w.longNumber(stat.mtime);
  w.int(stat.version);
  w.int(stat.cversion);
  w.int(stat.aversion);
  w.long(stat.ephemeralOwner);
  w.int(stat.dataLength);
  w.int(stat.numChildren);
  w.long(stat.pzxid);
}

export function readStat(r: JuteReader): Stat {
  return {
    czxid: r.long(),
    mzxid: r.long(),
    ctime: r.longNumber(),
    mtime: r.longNumber(),
    version: r.int(),
    cversion: r.int(),
    aversion: r.int(),
    ephemeralOwner: r.long(),
    dataLength: r.int(),
    numChildren: r.int(),
    pzxid: r.long(),
  };
}

export function writeAcl(w: JuteWriter, acl: readonly Acl[]): void {
  w.int(acl.length);
  for (const entry of acl) {
    w.int(entry.perms);
    w.string(entry.scheme);
    w.string(entry.id);
  }
}

export function readAcl(r: JuteReader): Acl[] {
  const count = r.count(12);
  const acl: Acl[] = [];
  for (let i = 0; i < count; i++) acl.push({ perms: r.int(), scheme: r.string(), id: r.string() });
  return acl;
}

export function writeClientInfo(w: JuteWriter, infos: readonly ClientInfo[]): void {
  w.int(infos.length);
  for (const info of infos) {
    w.string(info.authScheme);
    w.string(info.user);
  }
}

export function readClientInfo(r: JuteReader): ClientInfo[] {
  const count = r.count(8);
  const infos: ClientInfo[] = [];
  for (let i = 0; i < count; i++) infos.push({ authScheme: r.string(), user: r.string() });
  return infos;
}

export function writeWatcherEvent(w: JuteWriter, event: WatcherEvent): void {
  w.int(event.type);
  w.int(event.state);
  w.string(event.path);
}

export function readWatcherEvent(r: JuteReader): WatcherEvent {
  return { type: r.int(), state: r.int(), path: r.string() };
}
