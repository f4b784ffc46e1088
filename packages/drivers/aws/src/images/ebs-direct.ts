import { createHash } from "node:crypto";
import type { Snapshot } from "@aws-sdk/client-ec2";
import {
  DriverError,
  type ExternalId,
  inParallel,
  pieces,
  type Step,
  sleep,
  streamed,
} from "@nodeyard/driver";
import { tagListOf } from "../tags.ts";
import { snapshotsOf } from "./found.ts";
import { CALL_MS, type Upload } from "./parts.ts";
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

/** Stored while a snapshot is written: all non-empty blocks up to this number, in the order of the file, have arrived. */
interface Checkpoint {
  readonly snapshot: string;
  /** Count of blocks with data, not an index: empty blocks are never sent. */
  readonly blocks: number;
}

/**
 * Writes a raw file to a snapshot through the EBS direct APIs, without a bucket. Only blocks with data are sent. After a crash, blocks
 * since the last checkpoint are sent again; without a checkpoint all are, into the same snapshot. Returns the id of the completed snapshot.
 */
export async function* writeSnapshot(upload: Upload): AsyncGenerator<Step, string, void> {
  const { order, aws, signal, left } = upload;
  if (order.format !== "raw")
    throw new DriverError(
      "configuration",
      `ebs-direct takes raw images, not ${order.format}; correct image-format`,
    );
  // A crash after the completion, but before the AMI, leaves a snapshot that is done.
  const there = await snapshotsOf(aws, order.tag, signal);
  const whole = there.find(({ State }) => State === "completed");
  if (whole !== undefined) return whole.SnapshotId!;
  const usable = there.find(({ State }) => State === "pending");
  const id = usable?.SnapshotId ?? (yield* started(upload, there));
  const known = checkpointOf(upload.externalId, id);
  const sum = createHash("sha256");
  let blocks = 0;
  const dataBlocks = async function* () {
    for await (const { index, bytes } of pieces(streamed(upload.openFile, order), BLOCK)) {
      const block = bytes.byteLength === BLOCK ? bytes : Buffer.concat([bytes, EMPTY], BLOCK);
      // A block that is never written reads as zeros.
      if (EMPTY.equals(block)) continue;
      // LINEAR: the snapshot's checksum is the hash of the blocks' hashes, in the order of their indexes.
      const digest = createHash("sha256").update(block).digest();
      sum.update(digest);
      // Blocks that arrived before a crash are read again for the checksum of the snapshot, but not sent.
      if (blocks++ >= known) yield { index, block, checksum: digest.toString("base64") };
    }
  };
  yield { step: "upload", deadlineMs: left(), save: { externalId: { snapshot: id, blocks: known } } };
  let saved = 0;
  for await (const arrived of inParallel(dataBlocks(), PARALLEL, (block) => put(upload, id, block)))
    if (arrived - saved >= STRETCH) {
      saved = arrived;
      const at: Checkpoint = { snapshot: id, blocks: known + saved };
      yield { step: "upload", deadlineMs: left(), save: { externalId: { ...at } } };
    }
  yield { step: "complete", deadlineMs: left(), save: { externalId: { snapshot: id, blocks } } };
  await completed(upload, id, blocks, sum.digest("base64"));
  return id;
}

/** Starts the snapshot. A failed snapshot cannot be used again, so the new one has another token. The old one is deleted afterwards. */
async function* started(
  { order, aws, signal }: Upload,
  failed: readonly Snapshot[],
): AsyncGenerator<Step, string, void> {
  yield { step: "snapshot", deadlineMs: CALL_MS };
  const request = {
    VolumeSize: Math.ceil(order.size / GIB),
    ClientToken: uploadToken(
      order.tag,
      "snapshot",
      order.sha256,
      ...failed.map(({ SnapshotId }) => SnapshotId!).sort(),
    ),
    Description: order.name,
    Tags: tagListOf(uploadMetadata(order)),
  };
  const { SnapshotId } = await aws.ebs((ebs, to) => ebs.startSnapshot(request, to), signal);
  for (const old of failed)
    await aws.ec2((ec2, to) => ec2.deleteSnapshot({ SnapshotId: old.SnapshotId! }, to), signal);
  return SnapshotId!;
}

/** How many blocks have arrived in this snapshot, as far as it was stored. A checkpoint of another snapshot counts as none. */
function checkpointOf(externalId: ExternalId | null, snapshot: string): number {
  if (externalId === null || typeof externalId === "string" || externalId.snapshot !== snapshot) return 0;
  return typeof externalId.blocks === "number" ? externalId.blocks : 0;
}

/** Sends one block, and checks that the service received the same bytes. A block that is sent twice is written twice, to the same place. */
async function put(
  { order, aws, signal }: Upload,
  snapshot: string,
  {
    index,
    block,
    checksum,
  }: { readonly index: number; readonly block: Uint8Array; readonly checksum: string },
): Promise<void> {
  const request = {
    SnapshotId: snapshot,
    BlockIndex: index,
    BlockData: block,
    DataLength: BLOCK,
    Checksum: checksum,
    ChecksumAlgorithm: "SHA256" as const,
  };
  const answer = await aws.ebs((ebs, to) => ebs.putSnapshotBlock(request, to), signal);
  if (answer.Checksum === checksum) return;
  // The content of the snapshot is unknown from here on.
  await aws.ec2((ec2, to) => ec2.deleteSnapshot({ SnapshotId: snapshot }, to), signal);
  throw new DriverError(
    "transient",
    `block ${index} of ${order.file} has checksum ${answer.Checksum} in snapshot ${snapshot}, not ${checksum}`,
  );
}

/**
 * Seals the snapshot, and waits until it can be used. The service compares count and checksum of the blocks, and fails when one
 * is missing.
 */
async function completed(
  { aws, signal, clock }: Upload,
  snapshot: string,
  blocks: number,
  checksum: string,
): Promise<void> {
  const sum = {
    Checksum: checksum,
    ChecksumAlgorithm: "SHA256",
    ChecksumAggregationMethod: "LINEAR",
  } as const;
  const request = { SnapshotId: snapshot, ChangedBlocksCount: blocks, ...(blocks > 0 && sum) };
  for (;;) {
    const { Status } = await aws.ebs((ebs, to) => ebs.completeSnapshot(request, to), signal);
    if (Status === "completed") return;
    if (Status === "error")
      throw new DriverError("transient", `snapshot ${snapshot} failed when it was completed`);
    await sleep(clock, POLL_MS, signal);
  }
}
