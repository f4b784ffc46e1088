import type { Reader } from "@nodeyard/driver";

/** sshd(8), AUTHORIZED_KEYS: type, base64, comment. Options are left out: what root's file may say is not ours to judge. */
const KEY = /^(ssh-[a-z0-9-]+|ecdsa-sha2-[a-z0-9-]+|sk-[a-z0-9@.-]+) [A-Za-z0-9+/]+={0,2}( [\x20-\x7e]*)?$/;

/** Lines that a guest's root can be handed; any other is an error. */
export function readKeys(from: Reader): readonly string[] {
  return from.texts("authorized-keys").flatMap((line, index) => {
    if (KEY.test(line.trim())) return [line.trim()];
    from.error("authorized-keys", `has no public key as entry ${index}; write "<type> <base64> [comment]"`);
    return [];
  });
}
