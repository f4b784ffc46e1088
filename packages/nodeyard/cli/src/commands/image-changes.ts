import { checkExport, ImageOperationError } from "@nodeyard/operations";
import { readText, writePrivate } from "@nodeyard/process";
import type { Command } from "commander";
import { parseImage } from "../arguments.ts";
import { withBackend } from "../backend/with-backend.ts";
import { UsageError } from "../errors.ts";
import { printJson } from "../listing.ts";
import { configuredImage, demandKnown, imageIn } from "../names.ts";
import type { Session } from "../session.ts";

interface JsonOption {
  readonly json?: boolean;
}

/** All four parts of the path are needed: numbers of uploads repeat for each build and provider. */
interface UploadOptions extends JsonOption {
  readonly provider: string;
  readonly image: string;
  readonly buildId: string;
  readonly uploadId: string;
}

export function defineImagePause(command: Command, session: Session): void {
  pausing(command, session, true);
}

export function defineImageUnpause(command: Command, session: Session): void {
  pausing(command, session, false);
}

/**
 * Idempotent, both ways. The pause is a znode of the image (docs/contract/tree.md, "Paths of the contract"), which Nodepool's
 * builders obey, too.
 */
function pausing(command: Command, session: Session, paused: boolean): void {
  command
    .argument("<image>", "name of a diskimage", parseImage)
    .option("--json", "an object on stdout: image, paused")
    .action(async (image: string, { json }: JsonOption) => {
      // Rejects when a configuration was named that does not have it.
      const configured = await configuredImage(session, image);
      await withBackend(session, async (backend) => {
        await demandKnown(
          backend,
          configured !== undefined || (await imageIn(backend, image)) !== undefined,
          image,
        );
        await backend.call(paused ? "pause_image" : "unpause_image", { path: { id: image } });
      });
      if (json === true) printJson(session.io, { image, paused });
      else session.io.out(`${image} is ${paused ? "paused" : "not paused any more"}\n`);
    });
}

/** `nodeyard dib-image-delete`: marks the record and ends; builders delete files and uploads when they can. */
export function defineDibImageDelete(command: Command, session: Session): void {
  command
    .argument("<id>", 'IMAGE-BUILD, as "nodeyard dib-image-list" shows it', parseBuild)
    .option("--json", "an object on stdout: image, build, state")
    .action(async ({ image, build }: Build, { json }: JsonOption) => {
      await withBackend(session, (backend) => backend.call("delete_build", { path: { image, build } }));
      if (json === true) printJson(session.io, { image, build, state: "deleting" });
    });
}

/** `nodeyard image-delete`: the newest build is uploaded again when it was of that. To prevent it, delete the build. */
export function defineImageDelete(command: Command, session: Session): void {
  command
    .requiredOption("--provider <name>", "name of the provider", parseImage)
    .requiredOption("--image <name>", "name of the diskimage", parseImage)
    .requiredOption("--build-id <id>", "id of the build, without the image's name", parseImage)
    .requiredOption("--upload-id <id>", "number of the upload", parseImage)
    .option("--json", "an object on stdout: provider, image, build, upload, state")
    .action(async ({ buildId: build, uploadId: upload, provider, image, json }: UploadOptions) => {
      const path = { image, build, provider, upload };
      await withBackend(session, (backend) => backend.call("delete_upload", { path }));
      if (json === true) printJson(session.io, { provider, image, build, upload, state: "deleting" });
    });
}

/** A build by its two names. */
interface Build {
  readonly image: string;
  readonly build: string;
}

/** The id is what follows the last dash: names of images may hold dashes. */
function parseBuild(text: string): Build {
  const dash = text.lastIndexOf("-");
  if (dash <= 0 || dash === text.length - 1)
    throw new UsageError(`${JSON.stringify(text)} is not IMAGE-BUILD, as "nodeyard dib-image-list" shows it`);
  return { image: parseImage(text.slice(0, dash)), build: parseImage(text.slice(dash + 1)) };
}

/** `nodeyard export-image-data`: for a restore of the tree, so that images that stand in clouds are not forgotten there. */
export function defineExport(command: Command, session: Session): void {
  command
    .argument("<path>", "file to write")
    .option("--json", "an object on stdout: path, records")
    .action((path: string, { json }: JsonOption) =>
      withBackend(session, async (backend) => {
        const { records: all } = await backend.call("export_image_data", {});
        writePrivate(path, `${JSON.stringify(all, null, 1)}\n`);
        const records = Object.keys(all).length;
        if (json === true) printJson(session.io, { path, records });
        else session.io.err(`nodeyard: ${records} records written to ${path}\n`);
      }),
    );
}

/** For a server to write all records of images, milliseconds: it writes them to the tree one after the other. */
const IMPORT_MS = 600_000;

/** `nodeyard import-image-data`: the whole file is checked before the first record is written. */
export function defineImport(command: Command, session: Session): void {
  command
    .argument("<path>", "file that export-image-data wrote")
    .option("--json", "an object on stdout: path, records")
    .action(async (path: string, { json }: JsonOption) => {
      const records = parsed(readText(path, "the export"), path);
      const { size } = checkExport(records);
      await withBackend(session, (backend) =>
        backend.call("import_image_data", { body: { records } }, { timeoutMs: IMPORT_MS }),
      );
      if (json === true) printJson(session.io, { path, records: size });
      else session.io.err(`nodeyard: ${size} records written to the tree\n`);
    });
}

/** Throws ImageOperationError, as for any other file that is no export. */
function parsed(text: string, path: string): Record<string, string> {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new ImageOperationError(
      "operation.export_no_json",
      `${path} is not valid JSON: ${(error as Error).message}`,
      {
        cause: error,
      },
    );
  }
}
