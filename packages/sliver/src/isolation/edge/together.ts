/**
 * Begins all at once and resolves when all have ended, whatever happened: what fails must not leave the others at work
 * on a sliver that somebody else then takes apart. Rejects with the first failure in the order of the list.
 */
export async function together(...works: readonly Promise<unknown>[]): Promise<void> {
  for (const one of await Promise.allSettled(works)) if (one.status === "rejected") throw one.reason;
}
