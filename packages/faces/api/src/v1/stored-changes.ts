import { type Clock, messageOf, type Timer } from "@nodeyard/runtime";
import type { Log } from "@nodeyard/telemetry";
import type { NodeEntry, View } from "@nodeyard/view";
import type { EventFile } from "../edge/event-file.ts";
import { type Change, everything, keyOf } from "./changes.ts";
import { type Entry, KIND_NAMES, KINDS, type Kind, type Stored } from "./kinds.ts";

/** A change, or whether the view sees the whole tree from here on. */
export type Kept = Change | { readonly complete: boolean };

/** A process that numbered changes, by its name, and the number of its first one. */
export type Boot = readonly [name: string, from: number];

/** A change, or a thing at the beginning of a segment; without `e` the thing is gone. */
interface Line {
  readonly k: Kind;
  readonly i: string;
  readonly e?: Stored;
}

/** The first line of a segment: the number of its first change, and how many lines follow with what there is before it. */
interface Head {
  readonly first: number;
  readonly things: number;
  readonly boots: readonly Boot[];
}

/** A thing as the file has it last: decoded for clients, and as JSON for the comparison with the tree. */
interface Thing {
  readonly change: Change;
  readonly stored: Stored;
}

/** What the file has of earlier processes. */
interface Past {
  /** The number of the first change. */
  readonly first: number;
  readonly boots: Boot[];
  readonly changes: Kept[];
  /** After the last change. */
  readonly things: Map<string, Thing>;
  /** Changes in the last segment. */
  count: number;
}

/** Changes in a segment of the file; two of them are kept. */
const SEGMENT = 8_192;
/** Processes whose ids are still known. */
const MAX_BOOTS = 100;

interface Outside {
  readonly view: View;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Changes that outlive the process, in a file of its state folder. A segment begins with all things that there are, so that a later
 * process can compare them with the tree. A file that cannot be written or read stops nothing: then ids of events end with the process.
 */
export class StoredChanges {
  readonly #file: EventFile;
  readonly #outside: Outside;
  #past: Past | undefined;
  /** Processes that numbered changes, this one included. */
  readonly boots: readonly Boot[];
  #next: number;
  /** Changes in this segment. */
  #count: number;
  #timer: Timer | undefined;
  #isBroken = false;

  /** Goes on after what the file has of earlier processes. */
  constructor(file: EventFile, name: string, outside: Outside) {
    this.#file = file;
    this.#outside = outside;
    this.#past = this.#try(() => pastIn(file.open()));
    const { first = 1, boots = [], changes = [], count = 0 } = this.#past ?? {};
    this.#next = first + changes.length;
    this.#count = count;
    const boot: Boot = [name, this.#next];
    this.boots = [...boots, boot].slice(-MAX_BOOTS);
    // A file that was not understood has been removed, and a new one may do.
    this.#isBroken = false;
    if (this.#past === undefined) this.#begin();
    else file.append(JSON.stringify({ boot }));
  }

  /** The number of the first change that is kept. */
  get first(): number {
    return this.#past?.first ?? this.#next;
  }

  /** The kept changes of earlier processes, in their order; empty after `missed`. */
  get changes(): readonly Kept[] {
    return this.#past?.changes ?? [];
  }

  /**
   * What happened while no process looked: each thing that is not as it was, once. To be read last: what the file had is not kept in
   * memory any longer.
   */
  *missed(): Generator<Change> {
    const gone = this.#past?.things;
    this.#past = undefined;
    if (gone === undefined) return;
    const { view } = this.#outside;
    for (const now of everything(view, new Set(KIND_NAMES))) {
      const was = gone.get(keyOf(now));
      gone.delete(keyOf(now));
      if (was === undefined) yield now;
      else if (JSON.stringify(was.stored) !== JSON.stringify(KINDS[now.kind].stored(now.after!, view)))
        yield { ...now, before: formerly(was) };
    }
    // Its states before it was removed are not known.
    for (const was of gone.values())
      yield { ...was.change, before: formerly(was), after: undefined, skipped: true };
  }

  /** A change that was kept in memory. Written to the file in the next turn of the event loop, or before its id is sent. */
  add(change: Kept): void {
    this.#next++;
    if (this.#isBroken) return;
    this.#file.append(JSON.stringify("complete" in change ? change : lineOf(change, this.#outside.view)));
    if (++this.#count >= SEGMENT) return this.#begin();
    // Changes of one turn are one write.
    this.#timer ??= this.#outside.clock.setTimer(0, () => this.flush(), { background: true });
  }

  /** Before an id is sent, so that no client has one that is not in the file. */
  flush(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    if (!this.#isBroken) this.#try(() => this.#file.flush());
  }

  /** The file stays, for the next process. */
  close(): void {
    this.flush();
    if (!this.#isBroken) this.#try(() => this.#file.close());
  }

  /** Nobody can go on from here any more. */
  remove(): void {
    this.#timer?.cancel();
    if (!this.#isBroken) this.#try(() => this.#file.remove());
    this.#isBroken = true;
  }

  /** Begins a segment with all things as they are: what is older is not needed to understand it. */
  #begin(): void {
    const { view } = this.#outside;
    this.#count = 0;
    const things = [...everything(view, new Set(KIND_NAMES))].map((one) => JSON.stringify(lineOf(one, view)));
    const head: Head = { first: this.#next, things: things.length, boots: this.boots };
    this.#try(() => this.#file.begin([JSON.stringify(head), ...things]));
  }

  #try<T>(work: () => T): T | undefined {
    try {
      return work();
    } catch (error) {
      this.#isBroken = true;
      this.#outside.log.warn(
        { error: messageOf(error) },
        "cannot keep the events of the API in the state folder; clients that come back after a restart get a gap event",
      );
      // A file that stays ends before the ids that are sent from now on, and these are a gap for the next process.
      try {
        this.#file.remove();
      } catch {
        // It has been said.
      }
      return undefined;
    }
  }
}

/** What the segments say; undefined: there is nothing. Throws where a line is not of this format. O(lines). */
function pastIn(segments: readonly (readonly string[])[]): Past | undefined {
  let past: Past | undefined;
  for (const [first, ...lines] of segments) {
    if (first === undefined) continue;
    const head = JSON.parse(first) as Head;
    // The things at the beginning of the second segment are those at the end of the first.
    if (past === undefined || past.first + past.changes.length !== head.first) {
      past = { first: head.first, boots: [...head.boots], changes: [], things: new Map(), count: 0 };
      for (const line of lines.slice(0, head.things)) changeFrom(JSON.parse(line) as Line, past.things);
    }
    const before = past.changes.length;
    for (const text of lines.slice(head.things)) {
      const line = JSON.parse(text) as Line | { readonly complete: boolean } | { readonly boot: Boot };
      if ("boot" in line) past.boots.push(line.boot);
      else past.changes.push("complete" in line ? line : changeFrom(line, past.things));
    }
    past.count = past.changes.length - before;
  }
  return past;
}

/** The change that a line stands for; `things` is as after it. */
function changeFrom({ k: kind, i: id, e }: Line, things: Map<string, Thing>): Change {
  const key = `${kind} ${id}`;
  const was = things.get(key);
  const before = formerly(was);
  if (e === undefined) {
    things.delete(key);
    return { kind, id, before, after: undefined };
  }
  const stored = { ...was?.stored, ...e };
  const change = { kind, id, before, after: KINDS[kind].restored(id, stored) };
  things.set(key, { change, stored });
  return change;
}

/** A thing, as the state before a change. */
function formerly(was: Thing | undefined): Entry | undefined {
  if (was?.change.kind === "image") return { image: was.change.id, former: true };
  return was?.change.after;
}

/** The line of a change. A key that is undefined is left out of the JSON, and stays as it was when it is read. */
function lineOf(change: Change, view: View): Line {
  const { kind, id, before, after } = change;
  const stored = after && KINDS[kind].stored(after, view);
  if (stored === undefined) return { k: kind, i: id };
  // Most changes of a node are those of its lock, and its record is long.
  const isSame = kind === "node" && (before as NodeEntry | undefined)?.record === (after as NodeEntry).record;
  return { k: kind, i: id, e: isSame ? { ...stored, s: undefined } : stored };
}
