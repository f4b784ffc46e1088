import { askMembers, type ImageWork } from "../../asking/index.ts";
import type { OperationHandles } from "../handles.ts";

/** For builders to say how far they are, milliseconds. */
const WITHIN_MS = 2_000;

/** Builds and uploads of an image that go on now, as builders tell. Never rejects: who does not answer has nothing to tell. */
export async function imageWork(handles: OperationHandles, image: string): Promise<readonly ImageWork[]> {
  const { answers } = await askMembers(handles, { image }, WITHIN_MS);
  return answers.flatMap(({ testimony }) => testimony.images ?? []).filter((work) => work.image === image);
}

export type { ImageWork };
