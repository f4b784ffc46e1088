import { NAME, sshKey } from "@nodeyard/sliver-protocol";
import type { ControlAccount } from "./contract.ts";
import { ForwarderPathError } from "./errors.ts";

/**
 * The authorized_keys file of the one Unix user that all control accounts share. What a key may do is its forced
 * command, which names the account; `restrict` takes forwarding, terminals and the rest away. A key that is of two
 * accounts is the first one's: sshd would use that line only. Throws ForwarderPathError, GrammarError.
 */
export function renderAuthorizedKeys(forwarder: string, accounts: readonly ControlAccount[]): string {
  if (!/^\/[A-Za-z0-9._/-]+$/.test(forwarder)) throw new ForwarderPathError(forwarder);
  const seen = new Set<string>();
  const lines: string[] = [];
  for (const { name, keys } of accounts) {
    if (name !== "control" && !NAME.test(name)) continue;
    for (const key of keys.map(sshKey)) {
      if (seen.has(key)) continue;
      seen.add(key);
      lines.push(`restrict,command="${forwarder} ${name}" ${key}\n`);
    }
  }
  return lines.join("");
}
