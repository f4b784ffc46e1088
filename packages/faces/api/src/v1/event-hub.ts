import { LOGINS, TOKENS } from "@nodeyard/model";
import { type Clock, hexId, type Random, type Timer } from "@nodeyard/runtime";
import type { Log } from "@nodeyard/telemetry";
import type { View } from "@nodeyard/view";
import type { EventFile } from "../edge/event-file.ts";
import { packed } from "../gzip.ts";
import { ChangeLog, KEPT, type Piece } from "./change-log.ts";
import { audienceOf, type Change, changeIn, everything, type Interest, textOf } from "./changes.ts";
import { seesAll } from "./principal.ts";
import { type Kept, StoredChanges } from "./stored-changes.ts";

/** Where the events of one client go. */
export interface Sink {
  /** False: the client is behind, and `onDrain` calls back when it has caught up. */
  write(text: string | Uint8Array): boolean;
  onDrain(resume: () => void): void;
  /** Calls back when the client has gone. */
  onClose(ended: () => void): void;
  end(): void;
  /** Whether it is written in gzip, by `packed`. */
  readonly gzip?: boolean;
}

/** A client that follows. */
export interface Follower extends Interest {
  readonly sink: Sink;
  /** Whether the client wants only the newest state of a thing that changed several times before it was sent. */
  readonly newestOnly: boolean;
  /** The id of the last event that it has; undefined: it begins. */
  readonly last: string | undefined;
  /** Whether its right stands still. */
  readonly admitted: () => boolean;
}

/** Records by whose change a client may lose its right. */
const RIGHTS = [`${TOKENS}/`, `${LOGINS}/`];
const MISSED = "what was missed is no longer kept";
/** Changes of this time are sent together, milliseconds; a page with ten updates a second looks live. */
const GATHER_MS = 100;
/**
 * While more rows change than that, those of `newestOnly` are gathered for longer: all clients together are sent so many a millisecond at
 * most. A crowd of requests changes each row several times within two seconds, and a person reads none of the states in between.
 */
const ROWS_PER_MS = 10;
const GATHER_MOST_MS = 2_000;
/** The time between pings, milliseconds. They keep proxies from closing the connection, and detect clients that are gone. */
const PING_MS = 15_000;
/** Of a text that is sent at once, characters; then everything else has its turn. */
const PIECE = 64 * 1_024;
/** Of a walk in gzip; half a mebibyte takes some 10 ms. */
const PIECES_AT_ONCE = 8;

interface Outside {
  readonly clock: Clock;
  readonly random: Random;
  /** Where changes are kept for clients that come back after a restart; absent: a restart is a gap for them. */
  readonly stored?: { readonly file: EventFile; readonly log: Log };
}

/** Events of the view for clients that follow it: made from its events, and nothing is polled. */
export class EventHub {
  readonly #clock: Clock;
  readonly #view: View;
  readonly #random: Random;
  readonly #boot: string;
  /** One log of all changes and one of the newest states; each exists from the first client that needs it. */
  readonly #logs = new Map<boolean, ChangeLog>();
  readonly #clients = new Set<Client>();
  readonly #unsubscribe: () => void;
  #gathering: Timer | undefined;
  /** Since when newest states are gathered, on the monotonic clock; undefined: nothing has changed since they were sent. */
  #since: number | undefined;
  #ping: Timer | undefined;
  readonly #stored: Outside["stored"];
  /** The next number of the log of all changes, when the last client that read it had gone. */
  #left = 0;

  /** The view has been read whole before. */
  constructor(view: View, { clock, random, stored }: Outside) {
    this.#clock = clock;
    this.#view = view;
    this.#stored = stored;
    this.#random = random;
    this.#boot = hexId(random).slice(0, 8);
    // Clients of the process before may come back.
    if (stored?.file.exists === true) this.#left = this.#logOf(false).next;
    this.#unsubscribe = view.onEvent((event) => {
      // A client whose token was revoked or whose session ended gets nothing more, not even changes that are already gathered.
      if (event.type === "own" && RIGHTS.some((root) => event.path.startsWith(root))) this.#dismiss();
      const change = event.type === "complete" ? { complete: event.complete } : changeIn(event, view);
      if (change === undefined) return;
      for (const log of this.#logs.values()) log.add(change);
      this.#hurry(change);
      if (this.#gathering !== undefined) return;
      this.#since ??= this.#clock.monotonic();
      this.#gathering = this.#clock.setTimer(GATHER_MS, () => this.#flush(), { background: true });
    });
  }

  get size(): number {
    return this.#clients.size;
  }

  /** Sends events until the client goes, or loses its right. */
  follow(follower: Follower): void {
    const client = new Client(follower, this.#view, this.#logOf(follower.newestOnly), this.#clock);
    this.#clients.add(client);
    this.#ping ??= this.#clock.setTimer(PING_MS, () => this.#pingAll(), { background: true });
    follower.sink.onClose(() => this.#end(client));
    client.pump();
  }

  close(): void {
    this.#unsubscribe();
    this.#gathering?.cancel();
    for (const client of [...this.#clients]) this.#end(client);
    for (const log of this.#logs.values()) log.close(false);
  }

  /** Sends a change at once to those who wait for this one thing, such as a lease that a CI's job waits for: there are no others to gather. */
  #hurry(change: Kept): void {
    for (const client of this.#clients)
      if (client.waitsFor(change)) this.#clock.setTimer(0, () => client.pump(), { background: true });
  }

  #logOf(newestOnly: boolean): ChangeLog {
    const log = this.#logs.get(newestOnly) ?? this.#newLog(newestOnly);
    this.#logs.set(newestOnly, log);
    return log;
  }

  #newLog(newestOnly: boolean): ChangeLog {
    if (newestOnly) return new ChangeLog(`${this.#boot}n`, { newestOnly });
    const name = hexId(this.#random).slice(0, 8);
    const outside = { view: this.#view, clock: this.#clock };
    const stored =
      this.#stored && new StoredChanges(this.#stored.file, name, { ...outside, log: this.#stored.log });
    return new ChangeLog(name, { newestOnly, ...(stored && { stored }) });
  }

  /** Ends the log of all changes when nobody can go on in it any more: keeping it costs with each change. */
  #forget(): void {
    const log = this.#logs.get(false);
    if (log === undefined || log.next - this.#left <= KEPT) return;
    if ([...this.#clients].some((client) => client.reads(log))) return;
    log.close(true);
    this.#logs.delete(false);
  }

  #flush(): void {
    this.#gathering = undefined;
    const newest = this.#logs.get(true);
    const wait = newest === undefined ? 0 : this.#waitFor(newest);
    if (wait > 0) this.#gathering = this.#clock.setTimer(wait, () => this.#flush(), { background: true });
    for (const log of this.#logs.values()) if (wait === 0 || log !== newest) log.settle();
    for (const client of this.#clients) client.pump();
    this.#forget();
  }

  /** For how much longer the newest states are gathered, at most as long as changes of the other log may wait. Milliseconds. */
  #waitFor(log: ChangeLog): number {
    const now = this.#clock.monotonic();
    const rows = log.gathered * [...this.#clients].filter((client) => client.reads(log)).length;
    const due = (this.#since ?? now) + Math.min(GATHER_MOST_MS, rows / ROWS_PER_MS);
    if (due > now) return Math.min(GATHER_MS, due - now);
    this.#since = undefined;
    return 0;
  }

  #pingAll(): void {
    this.#ping = undefined;
    this.#dismiss();
    for (const client of this.#clients) client.ping();
    if (this.#clients.size > 0)
      this.#ping = this.#clock.setTimer(PING_MS, () => this.#pingAll(), { background: true });
  }

  #dismiss(): void {
    for (const client of [...this.#clients]) if (!client.admitted()) this.#end(client);
  }

  #end(client: Client): void {
    if (!this.#clients.delete(client)) return;
    client.end();
    const all = this.#logs.get(false);
    if (all !== undefined && client.reads(all)) this.#left = all.next;
    if (this.#clients.size > 0) return;
    this.#ping?.cancel();
    this.#ping = undefined;
  }
}

/**
 * One client and its position: a number in the shared log, and the walk through all things while it synchronizes. No events are queued
 * for it. A client that falls behind the log gets a `gap` event and starts again.
 */
class Client {
  readonly #follower: Follower;
  readonly #view: View;
  readonly #log: ChangeLog;
  readonly #clock: Clock;
  readonly #audience: string;
  #at: number;
  #walk: Iterator<Change> | undefined;
  #written = 0;
  #blocked = false;
  #ended = false;

  constructor(follower: Follower, view: View, log: ChangeLog, clock: Clock) {
    this.#follower = follower;
    this.#view = view;
    this.#log = log;
    this.#clock = clock;
    this.#audience = `${follower.sink.gzip === true} ${audienceOf(follower)}`;
    const known = follower.last === undefined ? undefined : log.numberAfter(follower.last);
    this.#at = known ?? log.next;
    if (known === undefined) this.#begin(follower.last === undefined ? undefined : MISSED);
    else this.#write(": continued\n\n");
  }

  admitted(): boolean {
    return this.#follower.admitted();
  }

  /** Whether it follows things by their ids, each of their states, and this is one of them. */
  waitsFor(change: Kept): boolean {
    const { newestOnly, kinds, filters } = this.#follower;
    if (newestOnly || !("kind" in change) || !kinds.has(change.kind)) return false;
    return filters.some(([key, ids]) => key === "id" && ids.has(change.id));
  }

  reads(log: ChangeLog): boolean {
    return this.#log === log;
  }

  ping(): void {
    if (!this.#blocked) this.#write(": ping\n\n");
  }

  /** Sends what there is, as far as the client takes it. */
  pump(): void {
    while (!this.#blocked && !this.#ended) {
      if (this.#at < this.#log.first) this.#begin(MISSED);
      const piece = this.#walk === undefined ? this.#changes() : this.#walked(this.#walk);
      if (piece.length === 0) return;
      this.#write(piece);
    }
  }

  end(): void {
    this.#ended = true;
    this.#follower.sink.end();
  }

  /** Everything from the start. Changes that come during the walk are sent after it, some a second time. */
  #begin(why: string | undefined): void {
    this.#at = this.#log.next;
    this.#walk = everything(this.#view, this.#follower.kinds);
    this.#write(why === undefined ? ": begins\n\n" : `event: gap\ndata: ${JSON.stringify({ why })}\n\n`);
  }

  #walked(walk: Iterator<Change>): string {
    // Settle first, so that all things of the walk count as sent. Otherwise a thing that appears and disappears within one gathering
    // time could be sent by the walk and never be removed at the client.
    this.#log.settle();
    let piece = "";
    while (piece.length < PIECE) {
      const { done, value } = walk.next();
      if (done === true) {
        this.#walk = undefined;
        const { complete } = this.#view;
        // The first event id: a client that loses its connection earlier starts again.
        return `${piece}id: ${this.#log.id(this.#at - 1)}\nevent: synced\ndata: ${JSON.stringify({ complete })}\n\n`;
      }
      piece += textOf(value, this.#view, this.#follower) ?? "";
    }
    return piece;
  }

  #changes(): Uint8Array {
    const { bytes, next } = this.#log.piece(this.#audience, this.#at, () => this.#piece(this.#at));
    this.#at = next;
    return bytes;
  }

  #piece(from: number): Piece {
    const { principal, filters } = this.#follower;
    // For a client with filters or limits, a change may be the one that makes a thing invisible, so it must not be skipped.
    const seesEach = seesAll(principal) && filters.length === 0;
    let text = "";
    let next = from;
    for (; text.length < PIECE; next++) {
      const change = this.#log.at(next);
      if (change === undefined) break;
      if (seesEach && this.#log.isOutdated(change)) continue;
      const message =
        "complete" in change
          ? `event: view\ndata: ${JSON.stringify(change)}\n\n`
          : textOf(change, this.#view, this.#follower, { each: !this.#follower.newestOnly });
      if (message !== undefined) text += `id: ${this.#log.id(next)}\n${message}`;
    }
    // A client gets no events of others' changes. From time to time it gets the id of its position, so that it can resume there.
    if (text === "" && next > from) text = `id: ${this.#log.id(next - 1)}\n: passed\n\n`;
    // The bytes are made once here for all clients; from a string, each connection would make its own copy.
    return { bytes: Buffer.from(this.#packed(text)), next };
  }

  #packed(text: string): string | Uint8Array {
    return this.#follower.sink.gzip === true && text !== "" ? packed(text) : text;
  }

  #write(text: string | Uint8Array): void {
    const { sink } = this.#follower;
    const bytes = typeof text === "string" ? this.#packed(text) : text;
    const resume = () => {
      this.#blocked = false;
      this.pump();
    };
    this.#blocked = true;
    if (!sink.write(bytes)) sink.onDrain(resume);
    // Packed, a whole walk fits into the buffer of a connection, and would be made at once.
    else if (this.#walk !== undefined && sink.gzip === true && ++this.#written % PIECES_AT_ONCE === 0)
      this.#clock.setTimer(0, resume, { background: true });
    else this.#blocked = false;
  }
}
