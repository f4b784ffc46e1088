import { textLike } from "./grammar.ts";
import { textOrTexts, texts } from "./words.ts";

const TYPE = /^(ssh-(ed25519|rsa|dss)|ecdsa-sha2-nistp(256|384|521)|sk-[a-z0-9-]+@openssh\.com)$/;

/**
 * "<type> <base64>" of a key in any usual form: that, with a comment, a line of known_hosts, or the base64 alone. Undefined when there is no
 * key, or its data is damaged or of another type. A line of known_hosts with a marker is none: it is about other keys, or revokes this.
 */
export function hostKeyOf(line: string): string | undefined {
  const words = line.trim().split(/\s+/).slice(0, 3);
  const at = words.findIndex((word) => typeIn(word) !== undefined);
  if (at < 0 || words[0]!.startsWith("@")) return undefined;
  const [type, named] = [typeIn(words[at]!)!, words[at - 1]];
  return named !== undefined && TYPE.test(named) && named !== type ? undefined : `${type} ${words[at]}`;
}

/** The type that the data of a key begins with. */
function typeIn(base64: string): string | undefined {
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(base64)) return undefined;
  const blob = Buffer.from(base64, "base64");
  const end = blob.length < 4 ? blob.length : 4 + blob.readUInt32BE();
  const type = blob.subarray(4, end).toString("latin1");
  return end < blob.length && TYPE.test(type) ? type : undefined;
}

const KEY = `AAAAC3NzaC1lZDI1NTE5AAAAI${"A".repeat(42)}`;
const HOST_KEY = textLike(
  "a host key as ssh-keyscan or a .pub file has it",
  (line) => hostKeyOf(line) !== undefined,
  [
    [
      `ssh-ed25519 ${KEY}`,
      `ssh-ed25519 ${KEY} root@h`,
      `h,192.0.2.1 ssh-ed25519 ${KEY}`,
      `[h]:22 ssh-ed25519 ${KEY}`,
      KEY,
    ],
    ["SHA256:3Eu5", `ssh-rsa ${KEY}`, "ssh-ed25519 AAAA", `@revoked h ssh-ed25519 ${KEY}`],
  ],
);

const normalized = (lines: readonly string[]): readonly string[] =>
  lines.map((line) => hostKeyOf(line) ?? line);
const FORMS = "Each as `<type> <base64>`, as a line of known_hosts, or as the base64 alone.";

/** Host keys, each as "<type> <base64>" whatever form the file has. */
export const hostKeys = (description: string) =>
  texts(`${description} ${FORMS}`, { default: [], like: HOST_KEY }).map(normalized);
/** The same for a key that may have one text in place of a list. */
export const hostKeyOrKeys = (description: string) =>
  textOrTexts(`${description} ${FORMS}`, { like: HOST_KEY, instead: "no host can show" }).map(normalized);
