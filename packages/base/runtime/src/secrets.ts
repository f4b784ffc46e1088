/** A shorter text occurs in messages by chance. */
const LEAST = 8;
/** Of one line of a longer text. */
const LEAST_LINE = 16;
/** Texts that are remembered of each sort; the oldest go first. */
const MOST = 1_000;

/** Those of the configuration, and those that are renewed again and again: tokens of years must not push a password out. */
const known: Record<"configured" | "renewed", ReadonlySet<string>> = {
  configured: new Set(),
  renewed: new Set(),
};
/** Longest first: of two that overlap, nothing may be left. */
let ordered: readonly string[] = [];

/**
 * Remembers a text that no message of this process may contain: a password, a token, a machine's user data. One set for the whole process,
 * because the far end may quote it in any error, and errors are made everywhere. Its base64 and URL forms and the lines of a longer text
 * count, too. A text of fewer than 8 characters is ignored.
 */
export function keepSecret(text: string | null | undefined, sort: keyof typeof known = "renewed"): void {
  if (text == null || text.length < LEAST) return;
  const lines = text.split("\n").map((line) => line.trim());
  const forms = [
    text.trim(),
    Buffer.from(text).toString("base64"),
    encodeURIComponent(text),
    lines.join(" ").trim(),
    ...lines.filter((line) => line.length >= LEAST_LINE),
  ];
  if (forms.every((form) => known[sort].has(form))) return;
  known[sort] = new Set([...new Set([...known[sort], ...forms])].slice(-MOST));
  ordered = [...known.configured, ...known.renewed].sort((a, b) => b.length - a.length);
}

/** The text with "(secret)" wherever it has what `keepSecret` was told. Call it before a text is shortened. */
export function withoutSecrets(text: string): string {
  let clean = text;
  for (const secret of ordered) if (clean.includes(secret)) clean = clean.replaceAll(secret, "(secret)");
  return clean;
}
