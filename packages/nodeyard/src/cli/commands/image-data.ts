import type { Command } from "commander";
import { checkExport, exportImages, ImageOperationError, importImages } from "../../operations/index.ts";
import { readText, writePrivate } from "../../process/index.ts";
import { type Session, withTree } from "../session.ts";

export function defineExport(command: Command, session: Session): void {
  command.argument("<path>", "file to write").action((path: string) =>
    withTree(session, async (handles) => {
      const all = await exportImages(handles);
      writePrivate(path, `${JSON.stringify(all, null, 1)}\n`);
      session.io.err(`nodeyard: ${Object.keys(all).length} records written to ${path}\n`);
    }),
  );
}

export function defineImport(command: Command, session: Session): void {
  command.argument("<path>", "file that export-image-data wrote").action(async (path: string) => {
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
      `${path} is not valid JSON: ${(error as Error).message}`,
      {
        cause: error,
      },
    );
  }
}
