import { issueText } from "@nodeyard/runtime";
import { expect, test } from "vitest";
import { z } from "zod";

const schema = z.strictObject({
  cpu: z.number().int().min(1).max(64).optional(),
  below: z.number().lt(5).optional(),
  name: z
    .string()
    .max(8)
    .regex(/^[a-z]+$/)
    .optional(),
  image: z.string().regex(/^x/, "must begin with x").optional(),
  kind: z.enum(["a", "b"]).optional(),
  list: z.array(z.number()).max(1).optional(),
  text: z.string().max(8).optional(),
  either: z.union([z.number(), z.boolean()]).optional(),
  v: z.literal(1).default(1),
});

function textOf(value: unknown, options: Parameters<typeof issueText>[2] = {}): string {
  const { error } = schema.safeParse(value);
  return error!.issues.map((issue) => issueText(issue, value, options)).join("; ");
}

test.each([
  [{ cpu: 99 }, "cpu: is 99, but must be at most 64"],
  [{ cpu: 0 }, "cpu: is 0, but must be at least 1"],
  [{ cpu: 1.5 }, "cpu: is 1.5, but must be a whole number"],
  [{ cpu: "many" }, "cpu: is a string, but must be a number"],
  [{ below: 5 }, "below: is 5, but must be less than 5"],
  [{ name: "abcdefghi" }, "name: has 9 characters, but must have at most 8"],
  [{ name: "A" }, 'name: is "A", but must match /^[a-z]+$/'],
  [{ image: "y" }, 'image: is "y", but must begin with x'],
  [{ kind: "c" }, 'kind: is "c", but must be one of "a", "b"'],
  [{ either: "x" }, 'either: is "x", which has none of the allowed forms'],
  [{ v: 2 }, "v: is 2, but must be 1"],
  [{ list: [1, 2] }, "list: has 2 entries, but must have at most 1"],
  [{ list: [null] }, "list.0: is null, but must be a number"],
  [{ cpus: 1 }, 'the whole: has unknown fields: "cpus"; remove them'],
  [[], "the whole: is a list, but must be an object"],
])("%j: %s", (value, text) => expect(textOf(value)).toBe(text));

test("an unknown field brings the most similar one, where the fields are known", () => {
  expect(textOf({ cpus: 1 }, { fields: ["cpu", "name"] })).toBe(
    'the whole: has unknown fields: "cpus"; remove them; did you mean cpu? known: cpu, name',
  );
});

test("the place begins with what the value is, and a secret string is not quoted", () => {
  expect(textOf({ cpu: 99 }, { where: "body" })).toBe("body.cpu: is 99, but must be at most 64");
  expect(textOf({ name: "A" }, { secret: true })).toBe("name: is a string, but must match /^[a-z]+$/");
  expect(textOf({ text: "P".repeat(9) })).toBe("text: has 9 characters, but must have at most 8");
});
