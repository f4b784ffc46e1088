import { type AlienImage, alienImages, uploadKey } from "@nodeyard/builder";
import type { Config } from "@nodeyard/config";
import { findInstallation } from "@nodeyard/coordination";
import { type Driver, driverScanner, type Place, type ProviderConfig, type Resource } from "@nodeyard/driver";
import { createScanner } from "@nodeyard/keyscan";
import { listResources, survey, surveyLeft } from "@nodeyard/launcher";
import { listNodes, listUploads, type OperationHandles, serversOf, treeNow } from "@nodeyard/operations";
import type { Difference, Row } from "@nodeyard/operations/listing";
import { messageOf } from "@nodeyard/runtime";
import type { Log } from "@nodeyard/telemetry";
import type { Drivers } from "./driver-registry.ts";
import { ProcessError } from "./errors.ts";

/** What a survey is made with: the configuration names providers and drivers. */
export interface CloudQuestion {
  readonly handles: OperationHandles;
  readonly config: Config;
  readonly drivers: Drivers;
  readonly log: Log;
  /** Name of a provider; undefined: all. */
  readonly only: string | undefined;
}

/** The listing of one cloud. */
interface CloudAnswer {
  readonly provider: string;
  readonly installation: string;
  readonly resources: readonly Resource[];
  readonly place: Place | undefined;
  /** Tree time before it was asked, milliseconds. */
  readonly asked: number;
}

/** What a survey found in all clouds, and the clouds that did not answer. */
export interface Answers<T> {
  readonly found: readonly T[];
  /** Providers whose cloud could not be asked. */
  readonly failures: readonly { readonly provider: string; readonly error: string }[];
}

/**
 * Lists the cloud of each provider, or of one, and collects what `look` finds. Changes nothing. `wanted` selects providers.
 * Rejects with ProcessError. One cloud after the other; one that fails does not stop the survey.
 */
async function askClouds<T>(
  { handles, config, drivers, log, only }: CloudQuestion,
  wanted: (driver: Driver, provider: ProviderConfig) => boolean,
  look: (answer: CloudAnswer) => Promise<readonly T[]>,
): Promise<Answers<T>> {
  const { clock, random, tree } = handles;
  const providers = config.providers.filter(({ name }) => only === undefined || name === only);
  // A misspelt name must not look like a cloud without differences.
  if (only !== undefined && providers.length === 0)
    throw new ProcessError(
      "process.no_such_provider",
      `the configuration has no provider ${only}; it has: ${config.providers.map(({ name }) => name).join(", ")}`,
    );
  const installation = await findInstallation(tree);
  if (installation === undefined)
    throw new ProcessError(
      "process.no_installation",
      "no Nodeyard has ever run on this tree, so it owns nothing in any cloud; name the right tree with -c FILE or --state DIR",
    );
  const scan = driverScanner(createScanner({ clock, random }));
  const found: T[] = [];
  const failures: { provider: string; error: string }[] = [];
  for (const provider of providers) {
    const driver = drivers.driver(provider.driver);
    if (!wanted(driver, provider)) continue;
    try {
      // Before the cloud is asked: a node that is made meanwhile must not count as vanished.
      const asked = treeNow(handles);
      const listed = await listResources(driver, provider, { clock, random, scan, log, installation });
      found.push(...(await look({ provider: provider.name, installation, ...listed, asked })));
    } catch (error) {
      failures.push({ provider: provider.name, error: messageOf(error) });
    }
  }
  return { found, failures };
}

/**
 * What the leak sweeps of launchers would do. Providers whose machines carry no tag are left out, as they are by the sweeps.
 * Rejects with ProcessError.
 */
export async function surveyLeaks(question: CloudQuestion): Promise<Answers<Difference>> {
  const { handles, config, only } = question;
  const tags = (driver: { readonly capabilities: { readonly tags: boolean } }) => driver.capabilities.tags;
  const answers = await askClouds(
    question,
    tags,
    async ({ provider, installation, resources, asked, place }) => {
      const { items, skipped } = await listNodes(handles);
      const nodes = items.map(({ record, locked }) => {
        // Only whether there is a lock matters here.
        return { id: record.id, record, version: 0, contenders: locked ? ["locked"] : [] };
      });
      return survey(provider, installation, resources, nodes, asked, skipped, place);
    },
  );
  if (only !== undefined) return answers;
  const { items } = await listNodes(handles);
  const served = new Set(config.providers.map(({ name }) => name));
  // Also one that left the configuration, as long as a launcher deletes its nodes with the former settings.
  for (const name of new Set(items.flatMap(({ record }) => record.provider ?? [])))
    if (!served.has(name) && (await serversOf(handles, name)).length > 0) served.add(name);
  const left = surveyLeft(
    items.map(({ record }) => ({ id: record.id, record })),
    (provider) => served.has(provider),
  );
  return { ...answers, found: [...answers.found, ...left] };
}

/** Images in clouds that carry a tag of ours, and that no upload stands for. Rejects with ProcessError. */
function surveyImages(question: CloudQuestion): Promise<Answers<AlienImage>> {
  const { uploads } = question.config.builder;
  const isAsked = (name: string) => question.only === name || (uploads.get(name)?.images.size ?? 0) > 0;
  return askClouds(
    question,
    (_, { name }) => isAsked(name),
    async ({ provider, installation, resources }) => {
      const { items, skipped } = await listUploads(question.handles);
      const own = items.filter((upload) => upload.provider === provider);
      const known = new Set(own.map(({ build, record }) => uploadKey(build, provider, record.id)));
      // An upload whose record cannot be read is known by its path.
      for (const { path } of skipped) {
        const [, , , , , build = "", , at = "", , upload = ""] = path.split("/");
        known.add(uploadKey(build, at, upload));
      }
      return alienImages(provider, installation, resources, known);
    },
  );
}

/** What clouds are looked through for. */
export type SurveyOf = "leaks" | "images";

/** Rows for lists, of `surveyLeaks` or `surveyImages`. Rejects with ProcessError. */
export async function surveyRows(what: SurveyOf, question: CloudQuestion): Promise<Answers<Row>> {
  if (what === "leaks") {
    const { found, failures } = await surveyLeaks(question);
    return { found: found.map((difference) => ({ ...difference })), failures };
  }
  const { found, failures } = await surveyImages(question);
  const rows = found.map(({ provider, id, kind, tag }) => {
    return { provider, name: `${tag.image}-${tag.buildId}`, id, upload_id: tag.uploadId, kind };
  });
  return { found: rows, failures };
}
