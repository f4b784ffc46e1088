import { type Clock, sleep } from "@nodeyard/runtime";
import type { Address } from "./contract.ts";
import { HostKeyProofError, NoCommonAlgorithmError } from "./errors.ts";
import { type Greeting, readHostKey, type Secrets } from "./ssh/handshake.ts";
import { type KeyType, keyTypesOf } from "./ssh/proof.ts";

/** A connection that was accepted and, when keys are requested, greeted like an SSH server. */
export interface Opened {
  readonly to: Address;
  /** Undefined when only the port was to be checked. */
  readonly greeting: Greeting | undefined;
  close(): void;
}

/** After this many failed exchanges for a key type, the server is taken not to have such a key. */
const EXCHANGES = 3;
/** Step and limit of the pauses between connections that the server refused, milliseconds. */
const RETRY_MS = 200;
const LONGEST_RETRY_MS = 2_000;

/**
 * Reads every host key of a server. The first key comes from the connection of `greeting`; each other type needs a connection of its
 * own, and these run in parallel. A connection that fails before the server greets is retried until `signal` aborts, because busy
 * servers refuse some connections (sshd's MaxStartups), which says nothing about their keys. A further type whose exchange fails
 * three times is left out.
 */
export async function readKeys(
  greeting: Greeting,
  open: () => Promise<Opened>,
  handles: { readonly clock: Clock; readonly secrets: Secrets },
  signal: AbortSignal,
): Promise<readonly string[]> {
  const [first, ...others] = keyTypesOf(greeting.lists[1]!);
  if (first === undefined) {
    const shown = greeting.lists[1]!.join(", ");
    throw new NoCommonAlgorithmError(`no host key type in common; the server has ${shown}`);
  }
  const reconnect = () => openAgain(open, handles.clock, signal);
  const further = others.map((type) => readFurther(type, reconnect, handles.secrets, signal));
  const keys = await Promise.all([readHostKey(greeting, first, handles.secrets), ...further]);
  return keys.filter((key) => key !== undefined);
}

async function readFurther(
  type: KeyType,
  open: () => Promise<Opened>,
  secrets: Secrets,
  signal: AbortSignal,
): Promise<string | undefined> {
  for (let exchange = 1; exchange <= EXCHANGES; exchange++) {
    const opened = await open();
    try {
      return await readHostKey(opened.greeting!, type, secrets);
    } catch (error) {
      signal.throwIfAborted();
      // A wrong proof is no matter of load: someone shows a key that is not theirs.
      if (error instanceof HostKeyProofError) throw error;
    } finally {
      opened.close();
    }
  }
  return undefined;
}

async function openAgain(open: () => Promise<Opened>, clock: Clock, signal: AbortSignal): Promise<Opened> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await open();
    } catch {
      signal.throwIfAborted();
      await sleep(clock, Math.min(LONGEST_RETRY_MS, attempt * RETRY_MS), signal);
    }
  }
}
