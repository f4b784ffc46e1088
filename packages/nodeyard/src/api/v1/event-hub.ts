import { LOGINS, TOKENS } from "@nodeyard/model";
import { type Clock, hexId, type Random, type Timer } from "@nodeyard/runtime";
import type { View } from "../../view/index.ts";
import { type Change, changeIn, everything, type Interest, textOf } from "./changes.ts";

/** Where the events of one client go. */
export interface Sink {
  /** False: the client is behind, and `onDrain` calls back when it has caught up. */
  write(text: string): boolean;
  onDrain(resume: () => void): void;
  /** Calls back when the client has gone. */
  onClose(ended: () => void): void;
  end(): void;
}

/** A client that follows. */
export interface Follower extends Interest {
  readonly sink: Sink;
  /** The id of the last event that it has; undefined: it begins. */
  readonly last: string | undefined;
  /** Whether its right stands still. */
  readonly admitted: () => boolean;
}

/** Where rights end. */
const RIGHTS = [`${TOKENS}/`, `${LOGINS}/`];
/** Changes that are kept for those who are behind or come back: what they cost in memory is bounded, however many clients there are. */
const KEPT = 4_096;
const MISSED = "what was missed is no longer kept";
/** Changes are sent together: a page that is told ten times a second looks live. Milliseconds. */
const GATHER_MS = 100;
/** Nobody on the way takes the connection for dead, and a client that has gone is noticed. Milliseconds. */
const PING_MS = 15_000;
/** Of a text that is sent at once, characters; then everything else has its turn. */
const PIECE = 64 * 1_024;

/** Events of the view for clients that follow it: made from its events, and nothing is polled. */
export class EventHub {
  readonly #clock: Clock;
  readonly #view: View;
  /** Of this process: after a restart nobody knows what was missed. */
  readonly #boot: string;
  readonly #kept: (Change | { readonly complete: boolean })[] = [];
  /** The number of the first change that is kept. */
  #first = 1;
  readonly #clients = new Set<Client>();
  readonly #unsubscribe: () => void;
  #gathering: Timer | undefined;
  #ping: Timer | undefined;

  constructor(view: View, { clock, random }: { readonly clock: Clock; readonly random: Random }) {
    this.#clock = clock;
    this.#view = view;
    this.#boot = hexId(random).slice(0, 8);
    this.#unsubscribe = view.onEvent((event) => {
      // A token that was revoked and a session that has ended show nothing more, not even what is on its way.
      if (event.type === "own" && RIGHTS.some((root) => event.path.startsWith(root))) this.#dismiss();
      const change = event.type === "complete" ? { complete: event.complete } : changeIn(event);
      if (change === undefined) return;
      this.#kept.push(change);
      // A quarter at once: moving all others for each change would cost more than keeping some more.
      if (this.#kept.length >= KEPT * 1.25)
        this.#first += this.#kept.splice(0, this.#kept.length - KEPT).length;
      this.#gathering ??= this.#clock.setTimer(GATHER_MS, () => this.#flush(), { background: true });
    });
  }

  get size(): number {
    return this.#clients.size;
  }

  /** Sends events until the client goes, or loses its right. */
  follow(follower: Follower): void {
    const client = new Client(follower, this.#view, {
      id: (at) => `${this.#boot}.${at}`,
      numberOf: (id) => this.#numberOf(id),
      next: () => this.#first + this.#kept.length,
      first: () => this.#first,
      at: (number) => this.#kept[number - this.#first],
    });
    this.#clients.add(client);
    this.#ping ??= this.#clock.setTimer(PING_MS, () => this.#pingAll(), { background: true });
    follower.sink.onClose(() => this.#end(client));
    client.pump();
  }

  close(): void {
    this.#unsubscribe();
    this.#gathering?.cancel();
    for (const client of [...this.#clients]) this.#end(client);
  }

  /** Of the change after the one of this id, kept or not; undefined: it is of another process. */
  #numberOf(id: string): number | undefined {
    const [, boot, digits] = /^([0-9a-f]{8})\.(\d{1,15})$/.exec(id) ?? [];
    const next = Number(digits) + 1;
    return boot === this.#boot && next <= this.#first + this.#kept.length ? next : undefined;
  }

  #flush(): void {
    this.#gathering = undefined;
    for (const client of this.#clients) client.pump();
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
    if (this.#clients.size > 0) return;
    this.#ping?.cancel();
    this.#ping = undefined;
  }
}

/** The kept changes, by number. */
interface Kept {
  id(number: number): string;
  numberOf(id: string): number | undefined;
  /** Of the change that comes next. */
  next(): number;
  first(): number;
  at(number: number): Change | { readonly complete: boolean } | undefined;
}

/**
 * One client, and how far it is: a number in what is kept for all, and the walk through everything where it has to begin. Nothing is
 * queued for it. Who falls behind what is kept is told of the gap and begins again.
 */
class Client {
  readonly #follower: Follower;
  readonly #view: View;
  readonly #kept: Kept;
  #at: number;
  #walk: Iterator<Change> | undefined;
  #blocked = false;
  #ended = false;

  constructor(follower: Follower, view: View, kept: Kept) {
    this.#follower = follower;
    this.#view = view;
    this.#kept = kept;
    const known = follower.last === undefined ? undefined : kept.numberOf(follower.last);
    this.#at = known ?? kept.next();
    if (known === undefined) this.#begin(follower.last === undefined ? undefined : MISSED);
    else this.#write(": continued\n\n");
  }

  admitted(): boolean {
    return this.#follower.admitted();
  }

  ping(): void {
    if (!this.#blocked) this.#write(": ping\n\n");
  }

  /** Sends what there is, as far as the client takes it. */
  pump(): void {
    while (!this.#blocked && !this.#ended) {
      if (this.#at < this.#kept.first()) this.#begin(MISSED);
      const piece = this.#walk === undefined ? this.#changes() : this.#walked(this.#walk);
      if (piece === "") return;
      this.#write(piece);
    }
  }

  end(): void {
    this.#ended = true;
    this.#follower.sink.end();
  }

  /** Everything from the start. Changes that come during the walk are sent after it, some a second time. */
  #begin(why: string | undefined): void {
    this.#at = this.#kept.next();
    this.#walk = everything(this.#view, this.#follower.kinds);
    this.#write(why === undefined ? ": begins\n\n" : `event: gap\ndata: ${JSON.stringify({ why })}\n\n`);
  }

  #walked(walk: Iterator<Change>): string {
    let piece = "";
    while (piece.length < PIECE) {
      const { done, value } = walk.next();
      if (done === true) {
        this.#walk = undefined;
        const { complete } = this.#view;
        // The first id: who is cut off before it begins again.
        return `${piece}id: ${this.#kept.id(this.#at - 1)}\nevent: synced\ndata: ${JSON.stringify({ complete })}\n\n`;
      }
      piece += textOf(value, this.#view, this.#follower) ?? "";
    }
    return piece;
  }

  #changes(): string {
    let piece = "";
    let passed = 0;
    for (; piece.length < PIECE; this.#at++) {
      const change = this.#kept.at(this.#at);
      if (change === undefined) break;
      const text =
        "complete" in change
          ? `event: view\ndata: ${JSON.stringify(change)}\n\n`
          : textOf(change, this.#view, this.#follower);
      if (text !== undefined) piece += `id: ${this.#kept.id(this.#at)}\n${text}`;
      passed++;
    }
    // Of others' changes a client hears nothing; now and then it hears how far it is, so that it need not begin again.
    return piece === "" && passed > 0 ? `id: ${this.#kept.id(this.#at - 1)}\n: passed\n\n` : piece;
  }

  #write(text: string): void {
    const { sink } = this.#follower;
    this.#blocked = !sink.write(text);
    if (!this.#blocked) return;
    sink.onDrain(() => {
      this.#blocked = false;
      this.pump();
    });
  }
}
