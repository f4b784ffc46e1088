import { abortable, type Clock } from "@nodeyard/runtime";
import { Calls, type MapError } from "./calls.ts";
import type { ProviderConfig } from "./config/compiled.ts";
import type { Log, Provider } from "./contract.ts";
import { asDriverError, type DriverError, type DriverErrorKind } from "./errors.ts";
import type { Offers } from "./offers.ts";
import type { Step, StepContext } from "./run-steps.ts";

/** A call to the cloud. For a generator it is one of its steps. */
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
  | "prices"
  | "console"
  | "upload"
  | "removeImage"
  | "handover"
  | "suspend"
  | "wake"
  | "reconcile"
  | "compare"
  | "machines";

/** Wraps each call. */
export type Layer = <T>(name: CallName, call: () => Promise<T>, signal: AbortSignal) => Promise<T>;

/** How a call ended: "ok", the kind of its DriverError, or "aborted" by its caller. */
export type CallOutcome = "ok" | "aborted" | DriverErrorKind;

/** Wraps the calls of a provider and decides which signal they get. */
interface Wrap {
  run<T>(name: CallName, signal: AbortSignal, call: (signal: AbortSignal) => Promise<T>): Promise<T>;
  steps<T>(
    name: CallName,
    context: StepContext,
    start: (context: StepContext) => AsyncGenerator<Step, T, void>,
  ): AsyncGenerator<Step, T, void>;
}

/** The methods that a driver implements. Drivers without the capabilities omit `inventory` and `probe`. */
export type ProviderMethods = Omit<Provider, "inventory" | "probe" | "close"> &
  Partial<Pick<Provider, "inventory" | "probe" | "close">>;

/**
 * Makes the provider that a driver's `open` returns. Each call ends with its caller's signal or when the provider is closed. All errors of
 * the methods become DriverErrors by `mapError`. So the methods need to do neither.
 *
 * `name` is the name of the provider. Without `mapError` other errors become `fatal`.
 */
export function provide(name: string, methods: ProviderMethods, mapError?: MapError): Provider {
  const calls = new Calls(name, mapError);
  return {
    // Methods that the driver omits are replaced below.
    ...around(methods as Provider, calls),
    inventory: () => methods.inventory?.() ?? [],
    probe: (item, signal) =>
      calls.run("probe", signal, async (own) => {
        if (methods.probe !== undefined) return methods.probe(item, own);
        return { alive: false, why: `provider ${name} has no inventory` };
      }),
    async close() {
      if (calls.closed.aborted) return;
      calls.close();
      await methods.close?.();
    },
  };
}

/** Wraps a provider in a layer. Metrics, logs and limits are layers, so that drivers need none. */
export function decorate(provider: Provider, layer: Layer): Provider {
  return around(provider, {
    run: (name, signal, call) => layer(name, () => call(signal), signal),
    steps: (name, context, start) => steps(name, start(context), layer, context.signal),
  });
}

/** A call of a provider that has ended; of a generator, each step by itself. */
export interface EndedCall {
  readonly call: CallName;
  readonly result: CallOutcome;
  /** By the monotonic clock. */
  readonly ms: number;
  /** What it rejected with. */
  readonly error?: unknown;
  /** Whether more steps follow. */
  readonly more: boolean;
}

/** Calls whose time limits come from `runSteps`, which also ends the wait for them. */
const IN_STEPS: ReadonlySet<CallName> = new Set([
  "create",
  "remove",
  "suspend",
  "wake",
  "upload",
  "removeImage",
]);

/**
 * The one guard around a driver, put there where a provider is opened: each call ends when its signal aborts, even if the driver ignores that;
 * it rejects with the signal's reason or a DriverError, whatever the driver threw; and it is logged and reported with its time.
 */
export function guard(
  provider: Provider,
  config: Pick<ProviderConfig, "name" | "driver">,
  { clock, log }: { readonly clock: Clock; readonly log: Log },
  onEnd: (call: EndedCall) => void = () => {},
): Provider {
  const ended = (began: number, end: Omit<EndedCall, "ms">) => {
    const ms = clock.monotonic() - began;
    const { call, result } = end;
    const facts = { driver: config.driver, provider: config.name, call, result, ms: Math.round(ms) };
    log.debug(facts, "a call of a driver ended");
    onEnd({ ...end, ms });
  };
  return decorate(provider, async (call, work, signal) => {
    const began = clock.monotonic();
    try {
      const value = await (IN_STEPS.has(call) ? work() : abortable(work(), signal));
      const { done = true } = (value ?? {}) as { readonly done?: boolean };
      ended(began, { call, result: "ok", more: !done });
      return value;
    } catch (thrown) {
      const error = signal.aborted ? signal.reason : asDriverError(thrown, `${config.name}: ${call}`);
      const result = signal.aborted ? "aborted" : (error as DriverError).kind;
      ended(began, { call, result, error, more: false });
      throw error;
    }
  });
}

/** The provider with each call passed through `wrap`. Methods without I/O are passed on as they are. */
function around(inner: Provider, wrap: Wrap): Provider {
  return {
    ...(inner.offers && { offers: aroundOffers(inner.offers, wrap) }),
    ...(inner.place && { place: () => inner.place!() }),
    create: (order, context) => wrap.steps("create", context, (own) => inner.create(order, own)),
    remove: (tag, context) => wrap.steps("remove", context, (own) => inner.remove(tag, own)),
    find: (tag, signal, stored) => wrap.run("find", signal, (own) => inner.find(tag, own, stored)),
    list: (signal) => wrap.run("list", signal, (own) => inner.list(own)),
    removeResource: (resource, signal) =>
      wrap.run("removeResource", signal, (own) => inner.removeResource(resource, own)),
    quota: (signal) => wrap.run("quota", signal, (own) => inner.quota(own)),
    need: (label, signal) => wrap.run("need", signal, (own) => inner.need(label, own)),
    inventory: () => inner.inventory(),
    probe: (item, signal) => wrap.run("probe", signal, (own) => inner.probe(item, own)),
    close: () => inner.close(),
  };
}

/** The same for the offers. One that the provider omits stays absent, as callers decide by its presence. */
function aroundOffers(
  { zones, types, prices, console, images, handover, suspension, slots, slivers, pace }: Offers,
  wrap: Wrap,
): Offers {
  return {
    ...(zones && {
      zones: { list: (pool, signal) => wrap.run("zones", signal, (own) => zones.list(pool, own)) },
    }),
    ...(types && { types }),
    ...(prices && {
      prices: {
        of: (type, az, signal) => wrap.run("prices", signal, (own) => prices.of(type, az, own)),
      },
    }),
    ...(pace && { pace }),
    ...(console && { console: { read: inContext("console", wrap, (tag, own) => console.read(tag, own)) } }),
    ...(images && {
      images: {
        formats: images.formats,
        upload: (order, context) => wrap.steps("upload", context, (own) => images.upload(order, own)),
        remove: (tag, context) => wrap.steps("removeImage", context, (own) => images.remove(tag, own)),
      },
    }),
    ...(suspension && {
      suspension: {
        suspend: (tag, context) => wrap.steps("suspend", context, (own) => suspension.suspend(tag, own)),
        wake: (order, context) => wrap.steps("wake", context, (own) => suspension.wake(order, own)),
      },
    }),
    ...(slots && {
      slots: { compare: (signal) => wrap.run("compare", signal, (own) => slots.compare(own)) },
    }),
    ...(slivers && {
      slivers: { machines: (signal) => wrap.run("machines", signal, (own) => slivers.machines(own)) },
    }),
    ...(handover && {
      handover: {
        ready: inContext("handover", wrap, (tag, own) => handover.ready(tag, own)),
        ...(handover.access && {
          access: inContext("handover", wrap, (tag, own) => handover.access!(tag, own)),
        }),
        ...(handover.reconcile && {
          reconcile: (uses, signal) => wrap.run("reconcile", signal, (own) => handover.reconcile!(uses, own)),
        }),
      },
    }),
  };
}

/** A call with the context of a step that is no generator. */
function inContext<A, T>(
  name: CallName,
  wrap: Wrap,
  call: (argument: A, context: StepContext) => Promise<T>,
) {
  return (argument: A, context: StepContext) =>
    wrap.run(name, context.signal, (signal) => call(argument, { ...context, signal }));
}

/** A generator by hand: one of the language's own costs a request several times as much, and each step of a machine passes here twice. */
function steps<T>(
  name: CallName,
  inner: AsyncGenerator<Step, T, void>,
  layer: Layer,
  signal: AbortSignal,
): AsyncGenerator<Step, T, void> {
  return {
    async next() {
      try {
        return await layer(name, () => inner.next(), signal);
      } catch (error) {
        // What a layer refuses does not leave the driver half-way.
        await inner.return(undefined as T);
        throw error;
      }
    },
    return: (value) => inner.return(value),
    throw: (error) => inner.throw(error),
    [Symbol.asyncIterator]() {
      return this;
    },
    async [Symbol.asyncDispose]() {
      await inner.return(undefined as T);
    },
  };
}
