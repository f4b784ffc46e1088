import { closeSync, openSync } from "node:fs";
import { join } from "node:path";
import { lockFile } from "@nodeyard/runtime";

/**
 * Holds `images-dir` for one builder: a second one would take the first one's builds for leftovers, and end them. "taken": another
 * builder has it. Throws what the system says where there is no locking.
 */
export function lockImages(folder: string): Disposable | "taken" {
  const path = join(folder, ".builder.lock");
  // By ourselves: SQLite would not say why it cannot.
  closeSync(openSync(path, "a", 0o600));
  return lockFile(path) ?? "taken";
}
