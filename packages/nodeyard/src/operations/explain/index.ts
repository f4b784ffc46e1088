import type { OperationHandles } from "../handles.ts";
import { leaseStory } from "./lease-story.ts";
import { nodeStory } from "./node-story.ts";
import { requestStory } from "./request-story.ts";
import type { ReadHistory, Story } from "./story.ts";

export { meaningOf } from "./meaning.ts";
export type { ReadHistory, Story, Wait } from "./story.ts";

export interface Explained {
  readonly kind: Story["kind"];
  readonly id: string;
}

/** What state it is in, what it waits for, what happened so far and what is next; undefined: nobody here knows it. */
export function explain(
  handles: OperationHandles,
  { kind, id }: Explained,
  read: ReadHistory,
): Promise<Story | undefined> {
  if (kind === "request") return requestStory(handles, id, read);
  if (kind === "lease") return leaseStory(handles, id, read);
  return nodeStory(handles, id, read);
}
