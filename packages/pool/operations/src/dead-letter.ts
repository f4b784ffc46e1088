import { DEAD_LETTERS, type DeadLetter, deadLetterPath, decodeDeadLetter } from "@nodeyard/model";
import { orUndefined } from "@nodeyard/tree";
import type { OperationHandles } from "./handles.ts";

/**
 * The dead letter of a node: why its machine cannot be deleted. Undefined: the node has none. Written and removed by launchers
 * (docs/design/deletion.md).
 */
export async function readDeadLetter(
  { tree }: OperationHandles,
  node: string,
): Promise<DeadLetter | undefined> {
  const found = await orUndefined(tree.get(deadLetterPath(node)));
  return found && decodeDeadLetter(node, found.data);
}

/** Ids of nodes that have one. */
export async function listDeadLetters({ tree }: OperationHandles): Promise<ReadonlySet<string>> {
  return new Set((await orUndefined(tree.children(DEAD_LETTERS))) ?? []);
}

/** Removes the mark: a launcher that serves the provider then tries at once, as if for the first time. False: there is none. */
export async function retryDeletion({ tree }: OperationHandles, node: string): Promise<boolean> {
  return (await orUndefined(tree.delete(deadLetterPath(node)).then(() => true))) ?? false;
}
