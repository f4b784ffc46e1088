import { issueText } from "@nodeyard/runtime";
import type { z } from "zod";

/**
 * Parses `text` as JSON and validates it with `schema`. Throws the error that `fail` makes for the first problem. Its argument follows
 * the name of the file in a message: `: capacity.cpu: is true, but must be a number`.
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
  throw fail(`: ${issueText(result.error.issues[0]!, value)}`);
}
