import { open } from "node:fs/promises";

/** Undefined when the work fails with the system error `code`. */
export async function ignoring<T>(code: string, work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === code) return undefined;
    throw error;
  }
}

/** False when the work fails, for any reason. */
export function succeeds(work: Promise<unknown>): Promise<boolean> {
  return work.then(
    () => true,
    () => false,
  );
}

/** fsyncs a file, or a folder with its names: a new name is durable only after that (fsync(2)). */
export async function syncPath(path: string): Promise<void> {
  await using file = await open(path, "r");
  await file.sync();
}
