import { AUDIT, type CommandChange, encodeChange } from "@nodeyard/model";
import { ensurePath, orUndefined } from "@nodeyard/tree";
import type { OperationHandles } from "./handles.ts";

/** Changes that stay in the tree: launchers that run take each over into their journal at once. */
const KEPT = 100;

/** Notes a change by a command line, which keeps no journal, for the audit of every launcher that runs (process/audit.ts). */
export async function noteChange({ tree }: OperationHandles, change: CommandChange): Promise<void> {
  await ensurePath(tree, AUDIT);
  await tree.create(`${AUDIT}/`, encodeChange(change), { sequential: true });
  const names = [...(await tree.children(AUDIT))].sort();
  // Another command line may have deleted it first.
  for (const name of names.slice(0, -KEPT)) await orUndefined(tree.delete(`${AUDIT}/${name}`));
}
