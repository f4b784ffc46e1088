import { type Difference, survey } from "../launcher/index.ts";
import { listNodes } from "../operations/index.ts";
import { type Answers, askClouds, type CloudQuestion } from "./ask-clouds.ts";

/**
 * What the leak sweeps of launchers would do. Providers whose machines carry no tag are left out, as they are by the sweeps.
 * Rejects with ProcessError.
 */
export function surveyLeaks(question: CloudQuestion): Promise<Answers<Difference>> {
  const tags = (driver: { readonly capabilities: { readonly tags: boolean } }) => driver.capabilities.tags;
  return askClouds(question, tags, async ({ provider, installation, resources, asked }) => {
    const { items, skipped } = await listNodes(question.handles);
    const nodes = items.map(({ record, locked }) => {
      return { id: record.id, record, version: 0, contenders: locked ? ["locked"] : [] };
    });
    return survey(provider, installation, resources, nodes, asked, skipped);
  });
}
