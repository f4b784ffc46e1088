import { open, rename, rm } from "node:fs/promises";
import { renderAuthorizedKeys } from "../authorized-keys.ts";
import type { ControlAccounts } from "../contract.ts";

/**
 * Keeps an authorized_keys file that lies outside of every home and only root may write: sshd is pointed at it with
 * `AuthorizedKeysFile`. It is replaced whole, so that no reader finds half of it.
 */
export function fileAccounts(path: string, forwarder: string): ControlAccounts {
  let written: string | undefined;
  return {
    async apply(accounts) {
      const text = renderAuthorizedKeys(forwarder, accounts);
      if (text === written) return;
      const draft = `${path}.draft`;
      await rm(draft, { force: true });
      const file = await open(draft, "wx", 0o644);
      try {
        await file.writeFile(text);
        await file.sync();
      } finally {
        await file.close();
      }
      await rename(draft, path);
      written = text;
    },
  };
}
