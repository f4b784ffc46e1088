import type { FakeCloud } from "@nodeyard/driver-fake";
import type { Clock, Random } from "@nodeyard/runtime";
import { type Op, requestBytes, TooLarge, type Tree } from "@nodeyard/tree";
import { type Effect, EffectNames, type Traps } from "./effects.ts";
import { isFenced, type Trap } from "./trap.ts";

export interface Instruments {
  readonly traps: Traps;
  /** Not the process's own clock: what kills the process comes from outside. */
  readonly clock: Clock;
  readonly random: Random;
  readonly trap: Trap;
  /** The tree refused a commit as too large. */
  readonly onTooLarge: () => void;
  /** The tree ends the process's session, if it has one that can end now. */
  readonly expire: () => void;
}

/** A call is in flight for at most this long before the process dies in it, milliseconds. */
const DURING_MS = { tree: 8, cloud: 100 };

const never = <T>(): Promise<T> => new Promise(() => {});

/** The same tree, at whose named effects the process may die. */
export function watchedTree(tree: Tree, instruments: Instruments): Tree {
  const names = new EffectNames();
  const perform = <T>(ops: readonly Op[], call: () => Promise<T>) =>
    passing(
      instruments,
      names.of(ops),
      DURING_MS.tree,
      isFenced(ops) ? () => trapped(instruments, call) : call,
    );
  const writes: Partial<Tree> = {
    create: (path, data = new Uint8Array(0), options = {}) =>
      perform([{ op: "create", path, data }], () => tree.create(path, data, options)),
    set: (path, data, options) => perform([{ op: "set", path, data }], () => tree.set(path, data, options)),
    delete: (path, options) => perform([{ op: "delete", path }], () => tree.delete(path, options)),
    commit: async (ops, options) => {
      if (isTooLarge(ops)) {
        instruments.onTooLarge();
        throw new TooLarge(`a commit of ${ops.length} operations`, requestBytes(ops), BATCH_BYTES);
      }
      return perform(ops, () => tree.commit(ops, options));
    },
  };
  return new Proxy(tree, {
    get(target, name) {
      const own = writes[name as keyof Tree];
      if (own !== undefined) return own;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

/** The same cloud, in whose calls the process may die. */
export function watchedCloud(
  cloud: FakeCloud,
  instruments: Instruments,
  onError: (status: number) => void,
): FakeCloud {
  const effects: Readonly<Record<string, readonly Effect[]>> = {
    create: ["driver.create"],
    delete: ["driver.remove"],
    createImage: ["image.create"],
    fillImage: ["image.fill"],
    deleteImage: ["image.delete"],
  };
  return new Proxy(cloud, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== "function") return value;
      return (...args: unknown[]) => {
        const call = () => {
          const result = Reflect.apply(value, target, args) as unknown;
          if (name === "create" && instruments.trap.strikes("session expired at a create"))
            instruments.clock.setTimer(instruments.random.float() * DURING_MS.cloud, instruments.expire);
          return result;
        };
        const result =
          effects[String(name)] === undefined
            ? call()
            : passing(instruments, effects[String(name)]!, DURING_MS.cloud, call as () => Promise<unknown>);
        if (result instanceof Promise)
          result.catch((error: { status?: unknown }) => {
            if (typeof error?.status === "number") onError(error.status);
          });
        return result;
      };
    },
  });
}

/**
 * Size limit of commits of several nodes, bytes: less than the tree states, as with a server whose limit is lower than its clients know.
 */
const BATCH_BYTES = 2_500;
const NODE = /^\/nodepool\/nodes\/\d*$/;

function isTooLarge(ops: readonly Op[]): boolean {
  const nodes = ops.filter(({ op, path }) => (op === "create" || op === "set") && NODE.test(path));
  return nodes.length > 1 && ops.some(isLedger) && requestBytes(ops) > BATCH_BYTES;
}

function isLedger({ path }: Op): boolean {
  return path.startsWith("/nodeyard/limits/");
}

/**
 * The session ends while the write is in flight, or between its decision and its sending. Not within one turn of the process: events of a
 * connection arrive between two turns.
 */
async function trapped<T>({ trap, clock, random, expire }: Instruments, call: () => Promise<T>): Promise<T> {
  if (!trap.strikes("session expired at a check")) return call();
  const { promise: ended, resolve } = Promise.withResolvers<void>();
  clock.setTimer(0, () => {
    expire();
    resolve();
  });
  if (random.float() < 0.5) await ended;
  return call();
}

async function passing<T>(
  { traps, clock, random }: Instruments,
  effects: readonly Effect[],
  duringMs: number,
  call: () => Promise<T>,
): Promise<T> {
  if (traps.springs(effects, "before")) return never();
  const result = call();
  const timer = traps.waits(effects, "during")
    ? clock.setTimer(random.float() * duringMs, () => void traps.springs(effects, "during"))
    : undefined;
  const value = await result.finally(() => timer?.cancel());
  return traps.springs(effects, "after") ? never() : value;
}
