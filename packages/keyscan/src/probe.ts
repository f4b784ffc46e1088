import { type Clock, deadline, sleep } from "@nodeyard/runtime";
import type { Address, Connect, Resolve, ScanResult, ScanTarget, Wire } from "./contract.ts";
import { ScanTimeoutError } from "./errors.ts";
import { type Opened, readKeys } from "./host-keys.ts";
import { greet, type Secrets } from "./ssh/handshake.ts";

export interface Handles {
  readonly clock: Clock;
  readonly connect: Connect;
  readonly resolve: Resolve;
  readonly secrets: Secrets;
}

/** How long one connection may take to open and, where keys are wanted, to show one. */
export const CONNECTION_MS = 10_000;
/** Between the starts of connections to the addresses of one host (RFC 8305 section 5). */
const ADDRESS_DELAY_MS = 250;
const MAX_ADDRESSES = 8;

/**
 * One round: resolve, reach one address, read its keys. Rejects with whatever went wrong first. `patienceMs` is for the first
 * bytes of a server that is not known to be one yet.
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
  // Ends the connections for the other keys when one of them fails the round.
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

/** The first of the addresses that answers; the attempts at the others end with it. */
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
      return { to, greeting: await greet(heard(wire, silence.cancel)), close };
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

/** The wire, which tells when the peer is no longer silent. */
function heard(wire: Wire, tell: () => void): Wire {
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
