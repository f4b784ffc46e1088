import { type Clock, deadline, sleep } from "@nodeyard/runtime";
import type { Address, Connect, Resolve, ScanResult, ScanTarget, Wire } from "./contract.ts";
import { ScanTimeoutError } from "./errors.ts";
import { type Opened, readKeys } from "./host-keys.ts";
import { greet, type Secrets } from "./ssh/handshake.ts";

/** What a scan uses of its host. Tests and simulations replace all of it. */
export interface Handles {
  readonly clock: Clock;
  readonly connect: Connect;
  readonly resolve: Resolve;
  readonly secrets: Secrets;
}

/** Time limit for one connection to open and, when keys are requested, to show one (milliseconds). */
export const CONNECTION_MS = 10_000;
/** Delay between the starts of connections to several addresses of a host (RFC 8305 section 5). */
const ADDRESS_DELAY_MS = 250;
/** Most addresses of a name that are tried, as a bound for names with hundreds. */
const MAX_ADDRESSES = 8;

/**
 * One try: resolves the name, connects to one address, reads its keys. Rejects with the first error. `patienceMs` is the time limit for
 * the first bytes from the server.
 */
export async function probe(
  target: ScanTarget,
  handles: Handles,
  patienceMs: number,
  signal: AbortSignal,
): Promise<ScanResult> {
  const addresses = (await handles.resolve(target.host, signal)).slice(0, MAX_ADDRESSES);
  const opened = await reach(target, addresses, handles, patienceMs, signal);
  const { address, family } = opened.to;
  // When reading one key fails, this ends the connections for the others.
  const round = new AbortController();
  const stop = AbortSignal.any([signal, round.signal]);
  try {
    const further = () => open(target, opened.to, handles, CONNECTION_MS, stop);
    const hostKeys =
      opened.greeting === undefined ? [] : await readKeys(opened.greeting, further, handles, stop);
    return { address, family, hostKeys };
  } finally {
    round.abort(new Error("the round is over"));
    opened.close();
  }
}

/** Connects to all addresses, started one after the other, and returns the first that answers. The others are aborted. */
async function reach(
  target: ScanTarget,
  addresses: readonly Address[],
  handles: Handles,
  patienceMs: number,
  signal: AbortSignal,
): Promise<Opened> {
  const racers = addresses.map(() => new AbortController());
  let winner: number | undefined;
  const attempts = addresses.map(async (to, index) => {
    const stop = AbortSignal.any([racers[index]!.signal, signal]);
    if (index > 0) await sleep(handles.clock, index * ADDRESS_DELAY_MS, stop);
    const opened = await open(target, to, handles, patienceMs, stop);
    winner ??= index;
    if (winner !== index) opened.close();
    return opened;
  });
  try {
    return await Promise.any(attempts);
  } catch (error) {
    signal.throwIfAborted();
    throw error instanceof AggregateError && error.errors.length === 1 ? error.errors[0] : error;
  } finally {
    for (const [index, racer] of racers.entries()) if (index !== winner) racer.abort(new Error("outrun"));
  }
}

/**
 * One connection, and the server's greeting when keys are requested. The limit of CONNECTION_MS goes on until `close`, over the exchange.
 */
async function open(
  target: ScanTarget,
  to: Address,
  handles: Handles,
  patienceMs: number,
  signal: AbortSignal,
): Promise<Opened> {
  const late = (ms: number) => () =>
    new ScanTimeoutError(`${to.address}:${target.port} was silent for ${ms} ms`);
  const bound = deadline(handles.clock, CONNECTION_MS, late(CONNECTION_MS), signal);
  const quiet = new AbortController();
  try {
    const wire = await handles.connect(to, target.port, AbortSignal.any([bound.signal, quiet.signal]));
    const close = () => {
      bound.cancel();
      wire.close();
    };
    if (!target.keys) return { to, greeting: undefined, close };
    const silence = deadline(handles.clock, patienceMs, late(patienceMs), bound.signal);
    silence.signal.addEventListener("abort", () => quiet.abort(silence.signal.reason), { once: true });
    try {
      return { to, greeting: await greet(watchedWire(wire, silence.cancel)), close };
    } catch (error) {
      close();
      throw error;
    } finally {
      silence.cancel();
    }
  } catch (error) {
    bound.cancel();
    throw error;
  }
}

/** Wraps a connection so that `tell` is called at its first bytes. */
function watchedWire(wire: Wire, tell: () => void): Wire {
  return {
    write: (bytes) => wire.write(bytes),
    close: () => wire.close(),
    async read() {
      const bytes = await wire.read();
      tell();
      return bytes;
    },
  };
}
