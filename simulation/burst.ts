import type { Random } from "@nodeyard/runtime";
import { Requestor } from "./requestor.ts";
import type { Scene } from "./scene.ts";
import { pick } from "./streams.ts";

/** Only small pools serve these labels. */
const LABELS = ["rare", "zoned", "board", "slice"];
/** Clients that request again as soon as they are done: more than any of the pools can serve at once. */
const AT_ONCE = 7;
/** Requests for one node, in all. */
const SMALL = 35;
/** The request for several nodes comes when the pool is full, milliseconds. */
const BEHIND_MS = 4_000;
const SEVERAL = 3;
/** A launcher believes the quota of a cloud for so long, also one that a fault lowered: a request for more than that keeps nobody waiting. */
const QUOTA_READ_MS = 300_000;

/** Clients that neither cancel, die, hold nor delay: the middle of every chance. */
const plain = { float: () => 0.5 } as Random;

/**
 * After the faults, one small pool gets more requests for one node than it can serve, and then a request for several nodes. That one must
 * be served although requests for one node never stop (checks/order.ts counts what is served before it).
 */
export async function burst({ cluster, clock, stream }: Scene): Promise<void> {
  const tree = cluster.connect({ name: "burst", sessionTimeoutMs: 600_000, latencyMs: [0, 3] });
  const client = new Requestor({
    tree,
    clock,
    random: plain,
    long: plain,
    executor: () => tree,
    touched: () => false,
    onDeath: () => {},
  });
  const after = (ms: number) => new Promise<void>((resolve) => clock.setTimer(ms, resolve));
  await after(QUOTA_READ_MS);
  const label = pick(stream("burst"), LABELS);
  let left = SMALL;
  const again = async () => {
    while (left-- > 0) await client.live([label]);
  };
  const behind = after(BEHIND_MS).then(() => client.live(Array<string>(SEVERAL).fill(label)));
  await Promise.all([behind, ...Array.from({ length: AT_ONCE }, again)]);
  await tree.close();
}
