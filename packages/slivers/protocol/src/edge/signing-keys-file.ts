import { generateKeyPairSync, type KeyObject } from "node:crypto";
import {
  closeSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";
import { syncPathSync } from "@nodeyard/runtime";
import { KeyFileError } from "../errors.ts";
import {
  decodeSigningKeys,
  encodeSigningKeys,
  newSigningKeys,
  rotateSigningKeys,
  type SigningKeys,
} from "../signing-keys.ts";

/** Reads the launcher's signing keys. Throws KeyFileError (also when other users can read the file), GrammarError, SignatureError. */
export function readSigningKeys(path: string): SigningKeys {
  let text: string;
  try {
    const { mode } = statSync(path);
    if ((mode & 0o077) !== 0)
      throw new KeyFileError(`other users can read the signing keys ${path}: chmod 600 it`);
    text = readFileSync(path, "utf8");
  } catch (cause) {
    if (cause instanceof KeyFileError) throw cause;
    const none = (cause as NodeJS.ErrnoException).code === "ENOENT";
    const remedy = none ? '; make them with "nodeyard sliverd keys init"' : "";
    throw new KeyFileError(`cannot read the signing keys ${path}: ${(cause as Error).message}${remedy}`, {
      cause,
    });
  }
  return decodeSigningKeys(text);
}

/** Makes the first key. Throws KeyFileError when there are keys already, because nodes trust those. */
export function createSigningKeys(path: string): SigningKeys {
  const keys = newSigningKeys(newKey());
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  // link(2) fails when the file exists, and the linked file is complete.
  write(path, keys, (draft) => {
    linkSync(draft, path);
    rmSync(draft);
  });
  return keys;
}

/** Makes a new key, which signs from now on; see rotateSigningKeys. Throws KeyFileError, KeySetError. */
export function rotateSigningKeysFile(
  path: string,
  times: { readonly now: number; readonly overlap: number },
): SigningKeys {
  const rotated = rotateSigningKeys(readSigningKeys(path), newKey(), times);
  write(path, rotated, (draft) => renameSync(draft, path));
  return rotated;
}

function newKey(): KeyObject {
  return generateKeyPairSync("ed25519").privateKey;
}

/**
 * Writes the file through a draft. The draft is also the lock: of two rotations at once, one would lose a key that the other's key set
 * names.
 */
function write(path: string, keys: SigningKeys, place: (draft: string) => void): void {
  const draft = `${path}.draft`;
  let file: number;
  try {
    file = openSync(draft, "wx", 0o600);
  } catch (cause) {
    const taken = (cause as NodeJS.ErrnoException).code === "EEXIST";
    const why = taken
      ? "another process is changing them; if none is, remove that file"
      : (cause as Error).message;
    throw new KeyFileError(`cannot write the signing keys ${draft}: ${why}`, { cause });
  }
  try {
    try {
      writeFileSync(file, encodeSigningKeys(keys), { flush: true });
    } finally {
      closeSync(file);
    }
    place(draft);
    syncPathSync(dirname(path));
  } catch (cause) {
    rmSync(draft, { force: true });
    const taken = (cause as NodeJS.ErrnoException).code === "EEXIST";
    const why = taken ? "keys exist already; rotate them to replace them" : (cause as Error).message;
    throw new KeyFileError(`cannot write the signing keys ${path}: ${why}`, { cause });
  }
}
