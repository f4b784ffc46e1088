import { askMembers, type BuildLogPart, type BuildLogRange, type ImageWork } from "@nodeyard/asking";
import type { OperationHandles } from "../handles.ts";

/** For builders to say how far they are, milliseconds. */
const WITHIN_MS = 2_000;

/**
 * Builds and uploads of an image in progress, as its builders report them. Never rejects; builders that do not answer in time are
 * left out, so that an empty list does not prove that nothing goes on.
 */
export async function imageWork(handles: OperationHandles, image: string): Promise<readonly ImageWork[]> {
  const { answers } = await askMembers(handles, { image }, WITHIN_MS);
  return answers.flatMap(({ testimony }) => testimony.images ?? []).filter((work) => work.image === image);
}

/**
 * A part of the log of a build, from the builder that has it; undefined: none says so. The first that has it ends the wait. Never
 * rejects.
 */
export async function askBuildLog(
  handles: OperationHandles,
  log: BuildLogRange,
): Promise<BuildLogPart | undefined> {
  const { answers } = await askMembers(
    handles,
    { log },
    WITHIN_MS,
    ({ testimony }) => testimony.log !== undefined,
  );
  return answers.map(({ testimony }) => testimony.log).find((part) => part !== undefined);
}

export type { BuildLogPart, BuildLogRange, ImageWork };
