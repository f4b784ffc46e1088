import { createHash } from "node:crypto";

/** Why `configured` keys are not all among those that the host shows; undefined when they are. */
export function mismatch(
  where: string,
  configured: readonly string[],
  shown: readonly string[],
): string | undefined {
  const known = new Set(shown.map(bare));
  const missing = configured.filter((key) => !known.has(bare(key)));
  if (missing.length === 0) return undefined;
  const wanted = missing.map(fingerprint).join(", ");
  const seen = shown.length === 0 ? "none" : shown.map(fingerprint).join(", ");
  return `host key mismatch: ${where} does not show the configured ${wanted}; it shows ${seen}`;
}

/** Type and key; a comment at the end says nothing about the key. */
function bare(key: string): string {
  const [type = "", data = ""] = key.trim().split(/\s+/);
  return `${type} ${data}`;
}

/** As `ssh-keygen -l` writes it, so that a person can compare. */
function fingerprint(key: string): string {
  const [type = "", data = ""] = bare(key).split(" ");
  const digest = createHash("sha256").update(Buffer.from(data, "base64")).digest("base64");
  return `${type} SHA256:${digest.replace(/=+$/, "")}`;
}
