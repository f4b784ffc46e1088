import { createHash } from "node:crypto";
import type { Snapshot } from "@aws-sdk/client-ec2";
import {
  CALL_MS,
  DriverError,
  type ExternalId,
  type Piece,
  polled,
  type Steps,
  savingAfter,
  sentPieces,
} from "@nodeyard/driver";
import { tagListOf } from "../tags.ts";
import { listSnapshots, ofUpload, type Upload } from "./parts.ts";
import { uploadMetadata, uploadToken } from "./tags.ts";

/** Bytes per block of the EBS direct APIs. */
const BLOCK = 512 * 1024;
const GIB = 1024 ** 3;
const EMPTY = Buffer.alloc(BLOCK);
/** Blocks that are sent at the same time. */
const PARALLEL = 16;
/** Blocks between two checkpoints: after a crash at most 32 MiB are sent again. */
const STRETCH = 64;
const POLL_MS = 2_000;

/**
 * Writes a raw file to a snapshot through the EBS direct APIs, without a bucket. Only blocks with data are sent. After a crash, blocks
 * since the last checkpoint are sent again; without a checkpoint all are, into the same snapshot. Returns the id of the completed snapshot.
 *
 * A checkpoint has the snapshot, and the count of its blocks with data that have arrived, in the order of the file.
 */
export async function* writeSnapshot(upload: Upload): Steps<string> {
  const { order, openFile, left } = upload;
  if (order.format !== "raw")
    throw new DriverError(
      "configuration",
      `ebs-direct takes raw images, not ${order.format}; correct image-format`,
    );
  // A crash after the completion, but before the AMI, leaves a snapshot that is done.
  const there = await ofUpload(upload, listSnapshots);
  const whole = there.find(({ State }) => State === "completed");
  if (whole !== undefined) return whole.SnapshotId!;
  const usable = there.find(({ State }) => State === "pending");
  const snapshot = usable?.SnapshotId ?? (yield* started(upload, there));
  const saving = savingAfter(upload.externalId);
  const from = checkpointOf(upload.externalId, snapshot);
  yield { step: "upload", deadlineMs: left(), ...saving({ snapshot, blocks: from }) };
  const sum = createHash("sha256");
  const dataOf = ({ index, bytes }: Piece) => {
    const block = bytes.byteLength === BLOCK ? bytes : Buffer.concat([bytes, EMPTY], BLOCK);
    // A block that is never written reads as zeros.
    if (EMPTY.equals(block)) return undefined;
    // LINEAR: the snapshot's checksum is the hash of the blocks' hashes, in the order of their indexes.
    const digest = createHash("sha256").update(block).digest();
    sum.update(digest);
    return { index, block, checksum: digest.toString("base64") };
  };
  const send = (block: Block) => put(upload, snapshot, block);
  const how = { openFile, order, length: BLOCK, from, parallel: PARALLEL, stretch: STRETCH, dataOf, send };
  let blocks = from;
  for await (blocks of sentPieces(how))
    yield { step: "upload", deadlineMs: left(), ...saving({ snapshot, blocks }) };
  yield { step: "complete", deadlineMs: left(), ...saving({ snapshot, blocks }) };
  await completed(upload, snapshot, blocks, sum.digest("base64"));
  return snapshot;
}

/** Starts the snapshot. A failed snapshot cannot be used again, so the new one has another token. The old one is deleted afterwards. */
async function* started({ order, aws, signal }: Upload, failed: readonly Snapshot[]): Steps<string> {
  yield { step: "snapshot", deadlineMs: CALL_MS };
  const old = failed.map(({ SnapshotId }) => SnapshotId!).sort();
  const request = {
    VolumeSize: Math.ceil(order.size / GIB),
    ClientToken: uploadToken(order.tag, "snapshot", order.sha256, ...old),
    Description: order.name,
    Tags: tagListOf(uploadMetadata(order)),
  };
  const { SnapshotId: made } = await aws.call("ebs.startSnapshot", request, signal);
  for (const SnapshotId of old) await aws.call("ec2.deleteSnapshot", { SnapshotId }, signal);
  return made!;
}

/** How many blocks have arrived in this snapshot, as far as it was stored. A checkpoint of another snapshot counts as none. */
function checkpointOf(externalId: ExternalId | null, snapshot: string): number {
  if (externalId === null || typeof externalId === "string" || externalId.snapshot !== snapshot) return 0;
  return typeof externalId.blocks === "number" ? externalId.blocks : 0;
}

interface Block {
  readonly index: number;
  readonly block: Uint8Array;
  readonly checksum: string;
}

/** Sends one block, and checks that the service received the same bytes. A block that is sent twice is written twice, to the same place. */
async function put(
  { order, aws, signal }: Upload,
  SnapshotId: string,
  { index, block, checksum }: Block,
): Promise<void> {
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
}

/**
 * Seals the snapshot, and waits until it can be used. The service compares count and checksum of the blocks, and fails when one
 * is missing.
 */
async function completed(
  { aws, signal, clock }: Upload,
  SnapshotId: string,
  blocks: number,
  Checksum: string,
): Promise<void> {
  const sum = { Checksum, ChecksumAlgorithm: "SHA256", ChecksumAggregationMethod: "LINEAR" } as const;
  const request = { SnapshotId, ChangedBlocksCount: blocks, ...(blocks > 0 && sum) };
  await polled(clock, POLL_MS, signal, async () => {
    const { Status } = await aws.call("ebs.completeSnapshot", request, signal);
    if (Status === "error")
      throw new DriverError("transient", `snapshot ${SnapshotId} failed when it was completed`);
    return Status === "completed" || undefined;
  });
}
