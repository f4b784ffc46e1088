/**
 * What is to be done again after each change, never twice at the same time: a call during a run means one more run after
 * it, however many calls there were. `work` must not reject.
 */
export function latest(work: () => Promise<void>): () => void {
  let running = false;
  let again = false;
  const run = async (): Promise<void> => {
    running = true;
    do {
      again = false;
      await work();
    } while (again);
    running = false;
  };
  return () => {
    if (running) again = true;
    else void run();
  };
}
