import type { Command } from "commander";
import type { Column } from "../../listing/index.ts";
import { Drivers, loadModule, openConfig, surveyImages } from "../../process/index.ts";
import { printFailures, printRows } from "../listing.ts";
import { logOf } from "../log.ts";
import { filesOf, type Session, withTree } from "../session.ts";

const columns: readonly Column[] = [
  { heading: "Provider", key: "provider" },
  { heading: "Name", key: "name" },
  { heading: "Image ID", key: "id" },
  { heading: "Upload ID", key: "upload_id" },
  { heading: "What", key: "kind" },
];

export function defineAlienImages(command: Command, session: Session): void {
  command
    .argument("[provider]", "only this provider of the configuration")
    .option("--json", "an array of objects on stdout")
    .action((provider: string | undefined, { json }: { readonly json?: boolean }) =>
      list(session, provider, json === true),
    );
}

async function list(session: Session, only: string | undefined, json: boolean): Promise<void> {
  const { io, machine } = session;
  const drivers = new Drivers(loadModule);
  const { config } = await openConfig(filesOf(session), machine, drivers);
  const { found, failures } = await withTree(session, (handles) =>
    surveyImages({ handles, config, drivers, log: logOf(session), only }),
  );
  const rows = found.map(({ provider, id, kind, tag }) => {
    return { provider, name: `${tag.image}-${tag.buildId}`, id, upload_id: tag.uploadId, kind };
  });
  printRows(io, rows, columns, { json });
  printFailures(io, failures);
}
