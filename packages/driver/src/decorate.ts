import type { Clock } from "@nodeyard/runtime";
import type { ExternalId, Machine, Provider, Step } from "./contract.ts";
import { asDriverError, DriverError, type DriverErrorKind } from "./errors.ts";
import type { RateLimiter } from "./limits/rate-limiter.ts";
import type { Notices, Offers } from "./offers.ts";

/** A call to the cloud; for a generator it is one step of it. */
export type CallName =
  | "create"
  | "remove"
  | "find"
  | "list"
  | "removeResource"
  | "quota"
  | "need"
  | "probe"
  | "zones"
  | "console"
  | "upload"
  | "removeImage"
  | "notice"
  | "handover"
  | "reconcile";

/** Runs around each call. */
export type Layer = <T>(name: CallName, call: () => Promise<T>, signal: AbortSignal) => Promise<T>;

/** How a call ended: "ok", the kind of its DriverError, or "aborted" by its caller. */
export type CallOutcome = "ok" | "aborted" | DriverErrorKind;

/** The provider inside layers, the first outermost. Drivers hold no metrics, logs or limits of their own. */
export function decorate(provider: Provider, ...layers: readonly Layer[]): Provider {
  return layers.reduceRight(around, provider);
}

/** Tells how long each call took and how it ended; milliseconds, monotonic. */
export function timing(
  clock: Clock,
  observe: (name: CallName, outcome: CallOutcome, ms: number) => void,
): Layer {
  return async (name, call, signal) => {
    const start = clock.monotonic();
    try {
      const value = await call();
      observe(name, "ok", clock.monotonic() - start);
      return value;
    } catch (error) {
      observe(name, outcomeOf(error, signal), clock.monotonic() - start);
      throw error;
    }
  };
}

/** Counts calls under way: `change` is +1 when one starts and -1 when it ends. */
export function inFlight(count: (name: CallName, change: 1 | -1) => void): Layer {
  return async (name, call) => {
    count(name, 1);
    try {
      return await call();
    } finally {
      count(name, -1);
    }
  };
}

/** Each call waits for its turn. */
export function limiting(limiter: RateLimiter): Layer {
  return async (name, call, signal) => {
    // A probe talks to the machine, not to the cloud; what a label needs is worked out or cached.
    if (name !== "probe" && name !== "need") await limiter.turn(signal);
    return call();
  };
}

/** Turns whatever is not a DriverError into a `fatal` one, unless the caller aborted: then its reason comes back. */
export function typedErrors(providerName: string): Layer {
  return async (name, call, signal) => {
    try {
      return await call();
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      throw asDriverError(error, `${providerName}: ${name}`);
    }
  };
}

function outcomeOf(error: unknown, signal: AbortSignal): CallOutcome {
  if (signal.aborted) return "aborted";
  return error instanceof DriverError ? error.kind : "fatal";
}

function around(inner: Provider, layer: Layer): Provider {
  const { offers } = inner;
  return {
    ...(offers === undefined ? {} : { offers: aroundOffers(offers, layer) }),
    create: (order, context) => steps<Machine>("create", inner.create(order, context), layer, context.signal),
    remove: (tag, context) => steps<void>("remove", inner.remove(tag, context), layer, context.signal),
    find: (tag, signal) => layer<ExternalId | undefined>("find", () => inner.find(tag, signal), signal),
    list: (signal) => layer("list", () => inner.list(signal), signal),
    removeResource: (resource, signal) =>
      layer("removeResource", () => inner.removeResource(resource, signal), signal),
    quota: (signal) => layer("quota", () => inner.quota(signal), signal),
    need: (label, signal) => layer("need", () => inner.need(label, signal), signal),
    inventory: () => inner.inventory(),
    probe: (item, signal) => layer("probe", () => inner.probe(item, signal), signal),
    close: () => inner.close(),
  };
}

function aroundOffers({ zones, types, console, images, notices, handover }: Offers, layer: Layer): Offers {
  return {
    ...(zones && {
      zones: { list: (pool, signal) => layer("zones", () => zones.list(pool, signal), signal) },
    }),
    ...(types && { types: { of: (label) => types.of(label) } }),
    ...(console && {
      console: {
        read: (tag, context) => layer("console", () => console.read(tag, context), context.signal),
      },
    }),
    ...(images && {
      images: {
        formats: images.formats,
        upload: (order, context) =>
          steps<ExternalId>("upload", images.upload(order, context), layer, context.signal),
        remove: (tag, context) =>
          steps<void>("removeImage", images.remove(tag, context), layer, context.signal),
      },
    }),
    ...(notices && { notices: aroundNotices(notices, layer) }),
    ...(handover && {
      handover: {
        ready: (tag, context) => layer("handover", () => handover.ready(tag, context), context.signal),
        ...(handover.reconcile && {
          reconcile: (uses, signal) => layer("reconcile", () => handover.reconcile!(uses, signal), signal),
        }),
      },
    }),
  };
}

/** What is not listened to stays absent. */
function aroundNotices(inner: Notices, layer: Layer): Notices {
  const { attributes, reused, scanFailed, deleted } = inner;
  return {
    ...(attributes && {
      attributes: (order, signal) => layer("notice", () => attributes.call(inner, order, signal), signal),
    }),
    ...(reused && {
      reused: (tag, request, signal) =>
        layer("notice", () => reused.call(inner, tag, request, signal), signal),
    }),
    ...(scanFailed && {
      scanFailed: (tag, context) =>
        layer("notice", () => scanFailed.call(inner, tag, context), context.signal),
    }),
    ...(deleted && {
      deleted: (tag, signal) => layer("notice", () => deleted.call(inner, tag, signal), signal),
    }),
  };
}

async function* steps<T>(
  name: CallName,
  inner: AsyncGenerator<Step, T, void>,
  layer: Layer,
  signal: AbortSignal,
): AsyncGenerator<Step, T, void> {
  try {
    for (;;) {
      const next = await layer(name, () => inner.next(), signal);
      if (next.done) return next.value;
      yield next.value;
    }
  } finally {
    // The value is never seen: a generator that has ended ignores it, one that is closed early has no result.
    await inner.return(undefined as T);
  }
}
