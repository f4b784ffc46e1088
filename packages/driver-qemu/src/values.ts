import type { Reader } from "@nodeyard/driver";
import { parseSubnet, type Subnet } from "./machine/bridge.ts";
import type { NumberRange } from "./machine/firewall.ts";

/** sshd(8), AUTHORIZED_KEYS: type, base64, comment. Options are left out: what root's file may say is not ours to judge. */
const KEY = /^(ssh-[a-z0-9-]+|ecdsa-sha2-[a-z0-9-]+|sk-[a-z0-9@.-]+) [A-Za-z0-9+/]+={0,2}( [\x20-\x7e]*)?$/;

/** Lines that a guest's root can be handed; any other is an error. */
export function readKeys(lines: readonly string[], at: Reader): readonly string[] {
  return lines.flatMap((line, index) => {
    if (KEY.test(line.trim())) return [line.trim()];
    at.error("authorized-keys", `has no public key as entry ${index}; write "<type> <base64> [comment]"`);
    return [];
  });
}

/** "first-last"; null: all machines run as `user`. */
export function readUsers(text: string | null, at: Reader): NumberRange | null {
  if (text === null) return null;
  const [, first, last] = (/^(\d{1,9})-(\d{1,9})$/.exec(text) ?? []).map(Number);
  if (first === undefined || last === undefined || first < 1000 || last < first) {
    at.error("users", `is ${text}; write two numbers from 1000 on, as in 200000-200999`);
    return null;
  }
  if (!at.has("user")) at.error("users", "needs user, whose group reads the images; add user");
  return { first, last };
}

/** Null: each machine is a port of `address`. */
export function readSubnet(text: string | null, at: Reader): Subnet | null {
  if (text === null) return null;
  const subnet = parseSubnet(text);
  if (subnet === undefined)
    at.error("bridge", `is ${text}; write a network, as in 10.93.0.0/24, from /18 to /29`);
  if (!at.has("user")) at.error("bridge", "needs user, whose programs may open the machines' ends; add user");
  return subnet ?? null;
}

export function readFormat(format: string, at: Reader): "qcow2" | "raw" {
  if (format === "qcow2" || format === "raw") return format;
  at.error("format", `is ${format}; write qcow2 or raw, and convert anything else with qemu-img`);
  return "raw";
}
