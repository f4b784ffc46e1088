import type { OperationHandles } from "../handles.ts";
import type { Hear } from "./hear.ts";
import { imageStory } from "./image-story.ts";
import { labelStory } from "./label-story.ts";
import { leaseStory } from "./lease-story.ts";
import { nodeStory } from "./node-story.ts";
import { requestStory } from "./request-story.ts";
import type { Story, StoryKind } from "./story.ts";

export { type Hear, type Heard, hearing, type ReadHistory } from "./hear.ts";
export { meaningOf, verdictMeaning } from "./meaning.ts";
export { isMoment, iso } from "./moments.ts";
export { type Explanation, explanationSchema, toExplanation } from "./shape.ts";
export type { LifeStep } from "./steps.ts";
export type { BuilderLine, BuildLine, ImageLines, PoolLine, Story, StoryKind, Told, Wait } from "./story.ts";

export interface Explained {
  readonly kind: StoryKind;
  readonly id: string;
}

/** What state it is in, what it waits for, what happened so far and what is next; undefined: nobody here knows it. */
export function explain(
  handles: OperationHandles,
  { kind, id }: Explained,
  hear: Hear,
): Promise<Story | undefined> {
  switch (kind) {
    case "request":
      return requestStory(handles, id, hear);
    case "lease":
      return leaseStory(handles, id, hear);
    case "node":
      return nodeStory(handles, id, hear);
    case "label":
      return labelStory(handles, id, hear);
    case "image":
      return imageStory(handles, id, hear);
  }
}
