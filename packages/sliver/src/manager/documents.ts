import { type Delivery, deliverFull } from "../core/deliver.ts";
import type { State } from "../core/record.ts";
import { MassRemovalError, NotYetError } from "../errors.ts";
import type { Manager } from "./manager.ts";
import { watched } from "./waits.ts";

/** Milliseconds in which a manager without a store learns what is on its machine. */
const FIRST_LOOK = 30_000;

/**
 * Takes a full document over; durable when it resolves. One that would end most slivers and does not say so is withheld: then it throws
 * MassRemovalError, and a polled source that still says the same after `agreeAfter` milliseconds is believed. Rejects with what `read`
 * and deliverFull throw, BusyError, StoreWriteError, NotYetError.
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

function agrees(manager: Manager, error: MassRemovalError, agreeAfter: number): boolean {
  const since = manager.withheld?.since ?? Number.POSITIVE_INFINITY;
  return isKnown(manager, error) && manager.options.clock.monotonic() - since >= agreeAfter;
}

/** An earlier document would have ended all of them. */
function isKnown({ withheld }: Manager, { ended }: MassRemovalError): boolean {
  return withheld !== undefined && ended.every((name) => withheld.ended.includes(name));
}
