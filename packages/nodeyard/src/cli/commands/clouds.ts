import type { Command } from "commander";
import type { Column, Row } from "../../listing/index.ts";
import { Drivers, loadModule, openConfig, surveyImages, surveyLeaks } from "../../process/index.ts";
import { printFailures, printRows } from "../listing.ts";
import { logOf } from "../log.ts";
import { filesOf, type Session, withTree } from "../session.ts";

interface LeaksOptions {
  readonly provider?: string;
  readonly json?: boolean;
}

const leakColumns: readonly Column[] = [
  { heading: "Provider", key: "provider" },
  { heading: "What", key: "kind" },
  { heading: "Type", key: "type" },
  { heading: "ID", key: "id" },
  { heading: "Node", key: "node" },
  { heading: "A Sweep Would", key: "action" },
  { heading: "Because", key: "why" },
];

export function defineLeaks(command: Command, session: Session): void {
  command
    .option("--provider <name>", "only this provider of the configuration")
    .option("--json", "an array of objects on stdout")
    .action(({ provider, json }: LeaksOptions) =>
      survey(session, surveyLeaks, (difference) => ({ ...difference }), leakColumns, provider, json),
    );
}

const imageColumns: readonly Column[] = [
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
    .action((only: string | undefined, { json }: { readonly json?: boolean }) =>
      survey(
        session,
        surveyImages,
        ({ provider, id, kind, tag }) => {
          return { provider, name: `${tag.image}-${tag.buildId}`, id, upload_id: tag.uploadId, kind };
        },
        imageColumns,
        only,
        json,
      ),
    );
}

/** Lists clouds, and prints the findings and the clouds that did not answer. */
async function survey<T>(
  session: Session,
  ask: (question: Parameters<typeof surveyLeaks>[0]) => Promise<{
    readonly found: readonly T[];
    readonly failures: Parameters<typeof printFailures>[1];
  }>,
  rowOf: (found: T) => Row,
  columns: readonly Column[],
  only: string | undefined,
  json: boolean | undefined,
): Promise<void> {
  const { io, machine } = session;
  const drivers = new Drivers(loadModule);
  const { config } = await openConfig(filesOf(session), machine, drivers);
  const { found, failures } = await withTree(session, (handles) =>
    ask({ handles, config, drivers, log: logOf(session), only }),
  );
  printRows(io, found.map(rowOf), columns, { json: json === true });
  printFailures(io, failures);
}
