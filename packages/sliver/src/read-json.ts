import type { z } from "zod";

/**
 * The value that `text` holds as JSON of the shape `schema`. Throws what `fail` makes of the first thing that is wrong: text that follows
 * the name of the file, as `: capacity.cpu: expected number`.
 */
export function readJson<T>(
  schema: z.ZodType<T>,
  text: string,
  fail: (what: string, cause?: unknown) => Error,
): T {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw fail(" is not valid JSON", cause);
  }
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  throw fail(`: ${issue?.path.join(".") || "the whole"}: ${issue?.message}`);
}
