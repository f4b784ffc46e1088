import type { CloudEvent, FakeCloud, ImageEvent, Journal } from "@nodeyard/driver-fake";
import type { Clock } from "@nodeyard/runtime";
import type { Effect } from "./checks/index.ts";

/** What a check of an effect needs to know of a process. */
export interface Caller {
  readonly name: string;
  /** Id of the session that it believes to have. */
  readonly session: bigint;
  /** Whether it may believe that its session lives. */
  readonly trusted: boolean;
}

type Note = (effect: Effect) => void;
type NoteImage = (event: ImageEvent) => void;

/**
 * Sees each create and delete of one cloud twice, with the calling process: when it is sent, and when the cloud carries it out, which may
 * be after the process died. The cloud does not know its callers; they are recognised by the timers that their calls set.
 */
export class CloudObserver {
  readonly #provider: string;
  readonly #note: Note;
  readonly #noteImage: NoteImage;
  /** Whose call is running now; undefined: a call of the simulation itself. */
  #caller: (() => Caller) | undefined;

  /** `noteImage` is called with images when a call takes effect, by any client. */
  constructor(provider: string, note: Note, noteImage: NoteImage) {
    this.#provider = provider;
    this.#note = note;
    this.#noteImage = noteImage;
  }

  /** The clock for the cloud. */
  clock(clock: Clock): Clock {
    return {
      now: () => clock.now(),
      monotonic: () => clock.monotonic(),
      setTimer: (ms, fn, options) => {
        const caller = this.#caller;
        return clock.setTimer(ms, () => this.#during(caller, fn), options);
      },
    };
  }

  /** The journal for the cloud: it is written when a call takes effect. */
  journal(machines: () => FakeCloud): Journal {
    let unread: string[] = [];
    return {
      append: (line) => {
        const event = JSON.parse(line) as CloudEvent | ImageEvent;
        if (event.op === "create") this.#tell("create", "done", machines(), event.server.id, event.server);
        if (event.op === "delete") this.#tell("delete", "done", machines(), event.id);
        if (event.op.startsWith("image")) this.#noteImage(event as ImageEvent);
        unread.push(line);
      },
      unread: () => {
        const lines = unread;
        unread = [];
        return lines;
      },
    };
  }

  /** The cloud as a process sees it. */
  as(caller: () => Caller, cloud: FakeCloud): FakeCloud {
    return new Proxy(cloud, {
      get: (_, name) => {
        const value: unknown = Reflect.get(cloud, name, cloud);
        if (typeof value !== "function") return value;
        return (...args: unknown[]) =>
          this.#during(caller, () => {
            if (name === "create") this.#tell("create", "sent", cloud, undefined, args[0] as Order);
            if (name === "delete") this.#tell("delete", "sent", cloud, args[0] as string);
            return Reflect.apply(value, cloud, args) as unknown;
          });
      },
    });
  }

  #tell(
    kind: Effect["kind"],
    moment: Effect["moment"],
    cloud: FakeCloud,
    machine: string | undefined,
    ordered?: Pick<Order, "tag" | "type">,
  ): void {
    if (this.#caller === undefined) return;
    const made = kind === "delete" ? cloud.inspect().find(({ id }) => id === machine) : undefined;
    // Gone already: nothing can be lost.
    if (kind === "delete" && made === undefined) return;
    const tag = (kind === "create" ? ordered : made)?.tag ?? null;
    const { name: client, session, trusted } = this.#caller();
    const node = tag?.nodeId;
    const ours = kind === "create" || (tag !== null && tag.installation !== FOREIGN);
    const caller = { client, session, trusted };
    const type = kind === "create" ? ordered?.type : undefined;
    this.#note({ kind, moment, provider: this.#provider, node, machine, ours, type, ...caller });
  }

  #during<T>(caller: (() => Caller) | undefined, work: () => T): T {
    const before = this.#caller;
    this.#caller = caller;
    try {
      return work();
    } finally {
      this.#caller = before;
    }
  }
}

type Order = Parameters<FakeCloud["create"]>[0];

/** Id of an installation that is not ours. */
export const FOREIGN = "another";
