import { expect, test } from "vitest";
import { limitsOf } from "../src/amounts.ts";

const GIB = 2 ** 30;

test.each([
  ["512MiB", 512],
  ["512 MiB", 512],
  ["1GB", 953],
  ["1073741824", 1024],
  // A share of the host, and nothing: what the host has.
  ["50%", 4096],
  [undefined, 4096],
])("a project with limits.memory %s has %i MiB", (memory, ram) => {
  const server = { cpu: { total: 2 }, memory: { total: 4 * GIB } };
  expect(limitsOf(memory === undefined ? {} : { "limits.memory": memory }, [server])).toMatchObject({ ram });
});
