import type { Random } from "@nodeyard/runtime";
import { Requestor } from "./requestor.ts";
import type { Scene } from "./scene.ts";
import { pick } from "./streams.ts";

/** Pools that serve these are small, and nobody else serves them. */
const LABELS = ["rare", "zoned", "board", "slice"];
/** Clients that ask again as soon as they are done: more than any of the pools can have at once. */
const AT_ONCE = 7;
/** Requests of one node, in all. */
const SMALL = 35;
/** The one who wants several comes when the pool is full, milliseconds. */
const BEHIND_MS = 4_000;
const SEVERAL = 3;

/** Neither cancels, dies, holds nor dawdles: the middle of every chance. */
const plain = { float: () => 0.5 } as Random;

/**
 * Once all is calm, one small pool is asked for more than it has, and then for several nodes at once: whoever wants them is served
 * although single nodes never cease to be asked for (checks/order.ts counts who is served first).
 */
export async function rush({ cluster, clock, stream }: Scene): Promise<void> {
  const tree = cluster.connect({ name: "rush", sessionTimeoutMs: 600_000, latencyMs: [0, 3] });
  const client = new Requestor({
    tree,
    clock,
    random: plain,
    long: plain,
    executor: () => tree,
    touched: () => false,
    onDeath: () => {},
  });
  const label = pick(stream("rush"), LABELS);
  let left = SMALL;
  const again = async () => {
    while (left-- > 0) await client.live([label]);
  };
  const behind = new Promise<void>((resolve) => clock.setTimer(BEHIND_MS, resolve)).then(() =>
    client.live(Array<string>(SEVERAL).fill(label)),
  );
  await Promise.all([behind, ...Array.from({ length: AT_ONCE }, again)]);
  await tree.close();
}
