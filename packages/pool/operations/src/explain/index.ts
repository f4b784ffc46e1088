import type { OperationHandles } from "../handles.ts";
import { imageStory } from "./image-story.ts";
import { labelStory } from "./label-story.ts";
import { jobStory, leaseStory } from "./lease-story.ts";
import type { QueryMembers } from "./member-replies.ts";
import { nodeStory } from "./node-story.ts";
import { requestStory } from "./request-story.ts";
import type { Story, StoryKind } from "./story.ts";

export type { BuildCode, UploadCode } from "./codes.ts";
export { verdictMeaning } from "./meaning.ts";
export { type MemberReplies, type QueryMembers, queryMembers, type ReadHistory } from "./member-replies.ts";
export { iso, isoOf } from "./reason.ts";
export type { LifeStep } from "./steps.ts";
export { type Explanation, type Story, type StoryKind, toExplanation } from "./story.ts";

/** What there is to explain, once it is known what an id or name means. */
export interface Explained {
  /** A job of a CI is explained by the lease that is for it. */
  readonly kind: StoryKind | "job";
  readonly id: string;
}

/**
 * The state of a subject, what it waits for, its history and its next step; undefined: no process knows the subject. Reads the
 * tree, and asks members by `query`; changes nothing. A member that does not answer makes the story poorer, and is named in it.
 */
export function explain(
  handles: OperationHandles,
  { kind, id }: Explained,
  query: QueryMembers,
): Promise<Story | undefined> {
  switch (kind) {
    case "request":
      return requestStory(handles, id, query);
    case "lease":
      return leaseStory(handles, id, query);
    case "job":
      return jobStory(handles, id, query);
    case "node":
      return nodeStory(handles, id, query);
    case "label":
      return labelStory(handles, id, query);
    case "image":
      return imageStory(handles, id, query);
  }
}
