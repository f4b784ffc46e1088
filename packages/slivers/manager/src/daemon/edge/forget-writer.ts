import { join } from "node:path";
import { systemClock } from "@nodeyard/runtime";
import { withoutWriter } from "../../core/signed-document.ts";
import { nodeFiles } from "../../store/edge/node-files.ts";
import { Store } from "../../store/store.ts";
import type { DaemonConfig } from "../config.ts";
import { auditFile } from "./audit-file.ts";
import { lockFolder } from "./lock.ts";

/**
 * Gives a machine back to its owner after another writer or a stolen key has taken it over: the keys of the configuration are trusted
 * again, and the next document may have any epoch. Slivers stay. Resolves with the changes, for people. Rejects with AlreadyRunningError,
 * ForeignStoreError, NewerStoreError, StoreWriteError, and errors of the file system.
 */
export async function forgetWriter(
  { node, stateFolder, keySet }: DaemonConfig,
  dryRun: boolean,
): Promise<string> {
  await using undo = new AsyncDisposableStack();
  undo.use(lockFolder(stateFolder));
  const store = new Store(nodeFiles(stateFolder), node);
  const { state } = await store.load();
  const { epoch, number } = state.minimum;
  const text =
    `document ${epoch}.${number} of ${state.writer ?? "a writer without a name"}, and key set ${state.keySet?.version ?? 0} ` +
    `(now ${keySet.version}: ${keySet.keys.map(({ kid }) => kid).join(", ")}); ${state.records.size} accounts stay`;
  if (dryRun) return `would forget ${text}`;
  const audit = auditFile(join(stateFolder, "audit.log"), () => undefined);
  undo.defer(() => audit.close());
  audit.audit({
    at: new Date(systemClock.now()).toISOString(),
    account: "root",
    role: "root",
    dialect: "local",
    method: "ForgetWriter",
    verdict: "allowed",
    message: text,
  });
  await store.save(withoutWriter(state, keySet));
  return `forgot ${text}`;
}
