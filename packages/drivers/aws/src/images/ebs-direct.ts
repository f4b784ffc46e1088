import { createHash } from "node:crypto";
import { DriverError, type Piece, polled, sentPieces } from "@nodeyard/driver";
import { tagListOf } from "../tags.ts";
import { itemsIn } from "./items.ts";
import { type Upload, uploadMetadata } from "./upload.ts";

/** Bytes per block of the EBS direct APIs. */
const BLOCK = 512 * 1024;
const GIB = 1024 ** 3;
const EMPTY = Buffer.alloc(BLOCK);
/** Blocks that are sent at the same time. */
const PARALLEL = 16;
/** Blocks between two checkpoints: after a crash at most 32 MiB are sent again. */
const STRETCH = 64;
const POLL_MS = 2_000;

/** Starts a snapshot that a raw file is written to through the EBS direct APIs, without a bucket. */
export async function startSnapshot({ order, aws }: Upload, signal: AbortSignal): Promise<string> {
  if (order.format !== "raw")
    throw new DriverError(
      "configuration",
      `ebs-direct takes raw images, not ${order.format}; correct image-format`,
    );
  // The SDK makes a client token for the tries of a call. One from the tag would bring back a snapshot that has failed.
  const request = {
    VolumeSize: Math.ceil(order.size / GIB),
    Description: order.name,
    Tags: tagListOf(uploadMetadata(order)),
  };
  return (await aws.call("ebs.startSnapshot", request, signal)).SnapshotId!;
}

/**
 * Writes the blocks with data from number `from` on, and yields how many have arrived, in the order of the file. Then it seals the snapshot and
 * waits until it can be used; one that was sealed already stays as it is. A block that is sent twice is written twice, to the same place.
 */
export async function* writeSnapshot(
  { aws, clock, order, openFile }: Upload,
  SnapshotId: string,
  from: number,
  signal: AbortSignal,
): AsyncGenerator<number, void, void> {
  const [there] = await itemsIn(aws).withIds([SnapshotId], signal);
  if (there?.state === "completed") return;
  const sum = createHash("sha256");
  const sent = sentPieces({
    ...{ openFile, order, length: BLOCK, from, parallel: PARALLEL, stretch: STRETCH },
    dataOf({ index, bytes }: Piece) {
      const block = bytes.byteLength === BLOCK ? bytes : Buffer.concat([bytes, EMPTY], BLOCK);
      // A block that is never written reads as zeros.
      if (EMPTY.equals(block)) return undefined;
      // LINEAR: the snapshot's checksum is the hash of the blocks' hashes, in the order of their indexes.
      const digest = createHash("sha256").update(block).digest();
      sum.update(digest);
      return { index, block, checksum: digest.toString("base64") };
    },
    async send({ index, block, checksum }) {
      const request = {
        ...{ SnapshotId, BlockIndex: index, BlockData: block, DataLength: BLOCK },
        ...({ Checksum: checksum, ChecksumAlgorithm: "SHA256" } as const),
      };
      const answer = await aws.call("ebs.putSnapshotBlock", request, signal);
      if (answer.Checksum === checksum) return;
      // The content of the snapshot is unknown from here on.
      await aws.call("ec2.deleteSnapshot", { SnapshotId }, signal);
      throw new DriverError(
        "transient",
        `block ${index} of ${order.file} has checksum ${answer.Checksum} in snapshot ${SnapshotId}, not ${checksum}`,
      );
    },
  });
  let blocks = from;
  for await (blocks of sent) yield blocks;
  // The service compares count and checksum of the blocks, and fails when one is missing.
  const Checksum = sum.digest("base64");
  const whole = { Checksum, ChecksumAlgorithm: "SHA256", ChecksumAggregationMethod: "LINEAR" } as const;
  const request = { SnapshotId, ChangedBlocksCount: blocks, ...(blocks > 0 && whole) };
  await polled(clock, POLL_MS, signal, async () => {
    const { Status } = await aws.call("ebs.completeSnapshot", request, signal);
    if (Status === "error")
      throw new DriverError("transient", `snapshot ${SnapshotId} failed when it was completed`);
    return Status === "completed" || undefined;
  });
}
