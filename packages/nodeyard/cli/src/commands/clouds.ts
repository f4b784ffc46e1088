import { alienImageColumns, type Column, differenceColumns, type Row } from "@nodeyard/operations/listing";
import { type Answers, Drivers, loadModule, openConfig, type SurveyOf, surveyRows } from "@nodeyard/process";
import { defined } from "@nodeyard/runtime";
import type { Command } from "commander";
import { clientOf } from "../backend/with-backend.ts";
import { printFailures, printRows } from "../listing.ts";
import { logOf } from "../log.ts";
import { filesOf, type Session, withTree } from "../session.ts";

interface LeaksOptions {
  readonly provider?: string;
  readonly json?: boolean;
}

/** `nodeyard leaks`: reads only. A provider that could not be asked makes exit code 1, after the others were shown. */
export function defineLeaks(command: Command, session: Session): void {
  command
    .option("--provider <name>", "only this provider of the configuration")
    .option("--json", "an array of objects on stdout")
    .action(({ provider, json }: LeaksOptions) =>
      survey(session, "leaks", differenceColumns, provider, json),
    );
}

/** `nodeyard alien-image-list`: images of others, without Nodeyard's tag, are not listed. */
export function defineAlienImages(command: Command, session: Session): void {
  command
    .argument("[provider]", "only this provider of the configuration")
    .option("--json", "an array of objects on stdout")
    .action((only: string | undefined, { json }: { readonly json?: boolean }) =>
      survey(session, "images", alienImageColumns, only, json),
    );
}

/** Prints what is found, and the clouds that did not answer: those of the file, or those of the launcher at NODEYARD_URL. */
async function survey(
  session: Session,
  what: SurveyOf,
  columns: readonly Column[],
  only: string | undefined,
  json: boolean | undefined,
): Promise<void> {
  const { io } = session;
  const { found, failures } =
    (await surveyByAddress(session, what, only)) ?? (await surveyHere(session, what, only));
  printRows(io, found, columns, { json: json === true });
  printFailures(io, failures);
}

/** Asks the clouds from this machine, with the credentials of the configuration here. Rejects with ConfigRefused or ProcessError. */
async function surveyHere(session: Session, what: SurveyOf, only: string | undefined): Promise<Answers<Row>> {
  const drivers = new Drivers(loadModule);
  const { config } = await openConfig(filesOf(session), session.machine, drivers);
  return withTree(session, (handles) =>
    surveyRows(what, { handles, config, drivers, log: logOf(session), only }),
  );
}

/** The survey of the launcher at NODEYARD_URL, which has the credentials. Undefined: no address is given. */
async function surveyByAddress(
  session: Session,
  what: SurveyOf,
  only: string | undefined,
): Promise<Answers<Row> | undefined> {
  const client = await clientOf(session);
  if (client === undefined) return undefined;
  const query = defined({ provider: only });
  const { items, failures } = await client.call(what === "leaks" ? "list_cloud_leaks" : "list_cloud_images", {
    query,
  });
  return { found: items, failures };
}
