import { randomUUID } from "node:crypto";
import { linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { syncPathSync } from "@nodeyard/runtime";
import { NODE_ID } from "@nodeyard/sliver-protocol";
import { DaemonConfigError } from "../../errors.ts";

/**
 * The id of this machine: a UUID in the state folder, made once, for a configuration that names none. Throws DaemonConfigError for a
 * file that cannot be read or holds something else.
 */
export function ownId(stateFolder: string): string {
  const path = join(stateFolder, "node-id");
  const found = read(path) ?? make(stateFolder, path);
  if (!NODE_ID.test(found))
    throw new DaemonConfigError(`${path} holds no node id; restore it, or name one in the file`);
  return found;
}

/** Undefined when there is no file. Any other failure is an error: making a new id would give up the store. */
function read(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8").trim();
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw new DaemonConfigError(`cannot read ${path}: ${(cause as Error).message}`, { cause });
  }
}

/**
 * Makes the id durable before it is used: a machine with a new id would refuse its own store. Of two processes the first one's id counts.
 */
function make(stateFolder: string, path: string): string {
  mkdirSync(stateFolder, { recursive: true, mode: 0o700 });
  const draft = `${path}.${process.pid}`;
  writeFileSync(draft, `${randomUUID()}\n`, { mode: 0o600, flush: true });
  try {
    // link(2) fails when the file exists, where rename(2) would replace it.
    linkSync(draft, path);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== "EEXIST") throw cause;
  } finally {
    rmSync(draft, { force: true });
  }
  syncPathSync(stateFolder);
  return readFileSync(path, "utf8").trim();
}
