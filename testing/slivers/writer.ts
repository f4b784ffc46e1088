import { backoff, deadline, sleep, systemClock, systemRandom } from "@nodeyard/runtime";
import { DocumentWriter, type SigningKeys, type SliverClient, signerOf } from "@nodeyard/sliver-protocol";

export interface Written {
  readonly client: SliverClient;
  readonly keys: SigningKeys;
  readonly node: string;
  readonly writer: string;
  readonly epoch: number;
}

/** Changes a node's document as a launcher does. `limit`: milliseconds for one delivery, with all of its attempts. */
export function writerOf({ keys, ...who }: Written, limit: number): DocumentWriter {
  return new DocumentWriter({
    ...who,
    signer: signerOf(keys),
    now: () => systemClock.now(),
    wait: (attempt, signal) => sleep(systemClock, backoff(systemRandom, attempt, 20, 500), signal),
    limit: () => deadline(systemClock, limit, () => new Error("too late")),
  });
}
