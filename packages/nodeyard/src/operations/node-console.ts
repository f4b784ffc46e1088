import { askMembers, type ConsoleEnd } from "../asking/index.ts";
import type { OperationHandles } from "./handles.ts";

/** Above what a launcher waits for the cloud, milliseconds. */
const WITHIN_MS = 10_000;

/** The end of the console of a node, from a launcher that serves its provider; undefined: none answers. Never rejects. */
export async function askConsole(handles: OperationHandles, node: string): Promise<ConsoleEnd | undefined> {
  const { answers } = await askMembers(handles, { console: node }, WITHIN_MS);
  const ends = answers.flatMap(({ testimony }) => testimony.console ?? []);
  return ends.find(({ problem }) => problem === null) ?? ends[0];
}
