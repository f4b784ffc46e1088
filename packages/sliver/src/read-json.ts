import type { z } from "zod";

/**
 * Parses `text` as JSON and validates it with `schema`. Throws the error that `fail` makes for the first problem. Its argument follows
 * the name of the file in a message: `: capacity.cpu: expected number`.
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
