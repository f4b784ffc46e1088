import type { Clock } from "@nodeyard/runtime";
import { type Fence, FenceLost, type HeldLock, type Tree } from "@nodeyard/tree";
import type { View } from "@nodeyard/view";

/** How long a caller waits for a complete view of the tree, milliseconds. */
const WHOLE_MS = 60_000;

/** What the decision needs: lock, connection, picture of the tree. */
interface Parts {
  readonly fence: Fence;
  readonly tree: Tree;
  readonly view: View;
  readonly clock: Clock;
}

/** Whether an outside effect may start: connected, the lock's session trusted, and the picture of the tree whole. */
export function mayAct({ fence, tree, view }: Parts): boolean {
  return tree.session().state === "connected" && view.complete && fence.sessionTrusted();
}

/**
 * To be awaited before every outside effect (rule 1): while the connection is down or the view compares itself no new
 * effect starts, and none ever does under a lock that may be lost. Rejects with FenceLost.
 */
export async function beforeEffect(parts: Parts, held: Omit<HeldLock, "fence" | "release">): Promise<void> {
  if (!mayAct(parts)) await whole(parts, held);
  parts.fence.demand(held);
}

function whole(parts: Parts, held: Omit<HeldLock, "fence" | "release">): Promise<void> {
  const { tree, view, clock } = parts;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let asked = false;
  const look = () => {
    if (tree.session().epoch !== held.epoch) reject(new FenceLost(`session of ${held.contender}`));
    else if (mayAct(parts)) resolve();
    else if (tree.session().state === "connected" && view.complete && !asked) {
      // Only trust is lacking (the clock jumped): an answer of the tree shows that the session lives.
      asked = true;
      tree.sync(held.parent).then(look, look);
    }
  };
  const timer = clock.setTimer(WHOLE_MS, () =>
    reject(new FenceLost(`lock ${held.contender}: no complete view of the tree for ${WHOLE_MS} ms`)),
  );
  const ends = [tree.onSession(look), view.onEvent((event) => event.type === "complete" && look())];
  look();
  return promise.finally(() => {
    timer.cancel();
    for (const end of ends) end();
  });
}

/** What ended a run of steps, when it was not the driver's doing. */
export function fenceOf(error: unknown): unknown {
  const cause = (error as { cause?: unknown } | undefined)?.cause;
  return cause instanceof FenceLost ? cause : error;
}
