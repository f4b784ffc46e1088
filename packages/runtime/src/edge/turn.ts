/** Resolves when every promise callback that is ready has run, and those that they made ready, however long the chain. */
export function microtasksDone(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
