import { type Delivery, deliverFull } from "../core/deliver.ts";
import type { State } from "../core/record.ts";
import { MassRemovalError, NotYetError } from "../errors.ts";
import type { Manager } from "./manager.ts";
import { watched } from "./waits.ts";

/** Milliseconds for the first look at the machine, when the manager has no store and must learn which slivers exist. */
const FIRST_LOOK = 30_000;

/**
 * Applies a full document; the change is durable when the promise resolves. A document that would end most slivers without saying so
 * (`removes`) is withheld, and MassRemovalError is thrown. When a polled source still says the same after `agreeAfter` milliseconds, the
 * document is applied. Rejects with the errors of `read` and deliverFull, BusyError, StoreWriteError, NotYetError.
 */
export async function takeDocument(
  manager: Manager,
  read: (state: State) => Delivery,
  agreeAfter = Number.POSITIVE_INFINITY,
): Promise<void> {
  if (manager.state.safe && manager.result === undefined) {
    await watched(manager, manager.sequence, FIRST_LOOK);
    if (manager.result === undefined)
      throw new NotYetError("the store was lost, and what runs on this machine is not known yet; try again");
  }
  const { capacity, clock, log } = manager.options;
  const take = (state: State, delivery: Delivery) => ({
    state: deliverFull(state, delivery, capacity, manager.observed).state,
    result: undefined,
  });
  try {
    await manager.change((state) => {
      const delivery = read(state);
      try {
        return take(state, delivery);
      } catch (error) {
        if (!(error instanceof MassRemovalError) || !agrees(manager, error, agreeAfter)) throw error;
        log.info(`ends ${error.ended.length} slivers: two documents agree on it`);
        return take(state, { ...delivery, removes: error.ended.length });
      }
    });
    // The writer has sent a document that could be applied, so the withheld one is out of date.
    manager.withheld = undefined;
  } catch (error) {
    if (error instanceof MassRemovalError && !isKnown(manager, error)) {
      const { message, ended } = error;
      manager.withheld = { message, ended, since: clock.monotonic() };
      log.error(`withheld: ${message}`);
    }
    throw error;
  }
}

/** Whether a withheld document has been there for `agreeAfter` milliseconds: a mistake is usually corrected before that. */
function agrees(manager: Manager, error: MassRemovalError, agreeAfter: number): boolean {
  const since = manager.withheld?.since ?? Number.POSITIVE_INFINITY;
  return isKnown(manager, error) && manager.options.clock.monotonic() - since >= agreeAfter;
}

/** An earlier withheld document would have ended all of these slivers too, so the log has them already. */
function isKnown({ withheld }: Manager, { ended }: MassRemovalError): boolean {
  return withheld !== undefined && ended.every((name) => withheld.ended.includes(name));
}
