import { createHash } from "node:crypto";
import { type Answer, type Asked, Refusal } from "./answers.ts";
import type { Json, Stored, World } from "./world.ts";

/** Disks that are written to by page blobs, and images that are made of them. */

const PAGE = 512;
/** Most bytes of one write of pages. */
const MOST = 4 << 20;
const MIB = 1 << 20;

/** What a disk holds, and what it took to write it. */
interface Blob {
  readonly data: Buffer;
  writes: number;
  bytes: number;
}

export class Blobs {
  readonly #byDisk = new Map<Stored, Blob>();
  /** Signatures by disk, which work until access ends. */
  readonly #open = new Map<string, Stored>();
  #count = 0;

  /** `PUT disks/NAME`. */
  putDisk(world: World, group: string, name: string, body: Json): Stored {
    const { creationData } = body.properties as Json;
    const { createOption, uploadSizeBytes } = (creationData ?? {}) as {
      createOption?: string;
      uploadSizeBytes?: number;
    };
    if (createOption !== "Upload" || uploadSizeBytes === undefined)
      throw new Refusal(400, "InvalidParameter", "Only disks to upload to are made here.");
    if ((uploadSizeBytes - PAGE) % MIB !== 0)
      throw new Refusal(
        400,
        "BadRequest",
        `uploadSizeBytes ${uploadSizeBytes} is not a multiple of 1 MiB plus a footer.`,
      );
    const present = world.find(group, "disks", name);
    if (present !== undefined) return present;
    const disk = world.make(group, "disks", name, {
      ...body,
      properties: {
        ...(body.properties as Json),
        provisioningState: "Succeeded",
        diskState: "ReadyToUpload",
      },
    });
    this.#byDisk.set(disk, { data: Buffer.alloc(uploadSizeBytes), writes: 0, bytes: 0 });
    return disk;
  }

  /** `POST disks/NAME/beginGetAccess`: a signature for writing. */
  open(disk: Stored, origin: string): { readonly accessSAS: string } {
    disk.properties.diskState = "ActiveUpload";
    const signature = createHash("sha256")
      .update(`${disk.id} ${++this.#count}`)
      .digest("base64");
    this.#open.set(signature, disk);
    return {
      accessSAS: `${origin}/md-upload/${disk.name}/abcd?sv=2018-03-28&sr=b&sig=${encodeURIComponent(signature)}`,
    };
  }

  /** `POST disks/NAME/endGetAccess`: Azure looks at the footer now. */
  close(disk: Stored): undefined {
    for (const [signature, open] of this.#open) if (open === disk) this.#open.delete(signature);
    const blob = this.#byDisk.get(disk);
    disk.properties.diskState = "Unattached";
    const footer = blob && this.#footer(blob);
    disk.properties.isWhole = footer?.subarray(0, 8).toString() === "conectix";
    return undefined;
  }

  /** `PUT {sas}&comp=page`. */
  write({ url, headers, body }: Asked): Answer {
    const disk = this.#open.get(url.searchParams.get("sig") ?? "");
    const refused = (status: number, code: string): Answer => ({
      status,
      headers: { "x-ms-error-code": code, "content-type": "application/xml" },
      body: `<?xml version="1.0" encoding="utf-8"?><Error><Code>${code}</Code><Message>${code}</Message></Error>`,
    });
    if (disk === undefined) return refused(403, "AuthenticationFailed");
    const blob = this.#byDisk.get(disk)!;
    const [, from, to] = /^bytes=(\d+)-(\d+)$/.exec(headers.range ?? headers["x-ms-range"] ?? "") ?? [];
    const [start, end] = [Number(from), Number(to) + 1];
    if (url.searchParams.get("comp") !== "page" || headers["x-ms-page-write"]?.toLowerCase() !== "update")
      return refused(400, "InvalidHeaderValue");
    if (start % PAGE !== 0 || end % PAGE !== 0 || end > blob.data.byteLength || end - start > MOST)
      return refused(416, "InvalidPageRange");
    if (body.byteLength !== end - start || Number(headers["content-length"]) !== body.byteLength)
      return refused(400, "InvalidHeaderValue");
    body.copy(blob.data, start);
    blob.writes++;
    blob.bytes += body.byteLength;
    return { status: 201, headers: { "x-ms-blob-sequence-number": "0" } };
  }

  /** `PUT images/NAME`, of a disk whose upload has ended. */
  putImage(world: World, group: string, name: string, body: Json): Stored {
    const { storageProfile } = body.properties as {
      storageProfile: { osDisk: { managedDisk: { id: string } } };
    };
    const disk = world.byId(storageProfile.osDisk.managedDisk.id);
    if (disk === undefined)
      throw new Refusal(404, "NotFound", `Disk ${storageProfile.osDisk.managedDisk.id} cannot be found.`);
    if (disk.properties.diskState !== "Unattached")
      throw new Refusal(409, "OperationNotAllowed", `Disk ${disk.name} is being uploaded to.`);
    if (disk.properties.isWhole !== true)
      throw new Refusal(
        400,
        "InvalidParameter",
        "The specified cookie value in VHD footer indicates that disk is not a valid VHD.",
      );
    const image = world.make(group, "images", name, {
      ...body,
      properties: { ...(body.properties as Json), provisioningState: "Creating" },
    });
    const blob = this.#byDisk.get(disk);
    if (blob !== undefined) this.#byDisk.set(image, blob);
    return image;
  }

  /** What an image or a disk holds, and what it took to write it. */
  inspect(stored: Stored) {
    const blob = this.#byDisk.get(stored);
    if (blob === undefined) return undefined;
    const sha256 = createHash("sha256").update(blob.data).digest("hex");
    return { sha256, writes: blob.writes, bytes: blob.bytes };
  }

  #footer({ data }: Blob): Buffer {
    return data.subarray(-PAGE);
  }
}
