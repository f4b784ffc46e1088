import type { Command } from "commander";
import { checkExport, exportImages, ImageOperationError, importImages } from "../../operations/index.ts";
import { readText, writePrivate } from "../../process/index.ts";
import { type Session, withTree } from "../session.ts";

export function addImageData(program: Command, session: Session): void {
  program
    .command("export-image-data")
    .description("save the records of builds, uploads and trials; the file is readable by you alone")
    .argument("<path>", "file to write")
    .action((path: string) =>
      withTree(session, async (handles) => {
        const all = await exportImages(handles);
        writePrivate(path, `${JSON.stringify(all, null, 1)}\n`);
        session.io.err(`nodeyard: ${Object.keys(all).length} records written to ${path}\n`);
      }),
    );
  program
    .command("import-image-data")
    .description(
      "write saved records of builds, uploads and trials back; stop all builders and launchers first",
    )
    .argument("<path>", "file that export-image-data wrote")
    .action(async (path: string) => {
      const all = checkExport(parsed(readText(path, "the export"), path));
      await withTree(session, (handles) => importImages(handles, all));
      session.io.err(`nodeyard: ${all.size} records written to the tree\n`);
    });
}

function parsed(text: string, path: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new ImageOperationError(
      "operation.export_no_json",
      `${path} is no JSON: ${(error as Error).message}`,
      {
        cause: error,
      },
    );
  }
}
