import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { CALLS } from "../src/index.ts";

const SOURCE = join(import.meta.dirname, "../src");

test("the list of calls, which the policy is made from, is what the driver calls, and nothing more", () => {
  const files = readdirSync(SOURCE, { recursive: true, encoding: "utf8" }).filter((path) =>
    /(?<!calls)\.ts$/.test(path),
  );
  const source = files.map((path) => readFileSync(join(SOURCE, path), "utf8")).join("\n");
  const made = new Set(source.match(/(?<=")(ec2|s3|ebs|quotas|pricing|sqs|ssm)\.[a-z]\w+(?=")/g));
  expect(Object.values(CALLS).flat().sort()).toEqual([...made].sort());
});
