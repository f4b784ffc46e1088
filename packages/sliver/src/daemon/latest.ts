export interface Latest {
  call(): void;
  /** Nothing is begun any more; resolves when nothing runs. */
  end(): Promise<void>;
}

/**
 * What is to be done again after each change, never twice at the same time: a call during a run means one more run after
 * it, however many calls there were. `work` must not reject.
 */
export function latest(work: () => Promise<void>): Latest {
  let running: Promise<void> | undefined;
  let again = false;
  let ended = false;
  const run = async (): Promise<void> => {
    do {
      again = false;
      await work();
    } while (again && !ended);
    running = undefined;
  };
  return {
    call: () => {
      if (running !== undefined) again = true;
      else if (!ended) running = run();
    },
    end: async () => {
      ended = true;
      await running;
    },
  };
}
