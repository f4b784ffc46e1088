import { fileURLToPath } from "node:url";
import { afterEach, expect, test } from "vitest";
import { Site } from "./nodeyard.ts";

const EXAMPLE = fileURLToPath(new URL("../../../../examples/driver-lab/", import.meta.url));
const site = new Site("");
afterEach(() => site.close());

test("config-validate judges by the driver's own schema, with paths that start from the file", async () => {
  const example = await site.run("-c", `${EXAMPLE}nodepool.yaml`, "config-validate", "--strict");
  expect([example.code, example.err]).toEqual([0, expect.not.stringContaining("ERROR")]);
  site.write(
    "labels: []\nproviders:\n  - {name: desk, driver: ./lab.ts}\n  - {name: b, driver: fake, cloud: c, x: 1}\n",
  );
  const wrong = await site.run("-c", site.config, "config-validate");
  expect(wrong.code).toBe(1);
  expect(wrong.err).toContain(
    `nodepool.yaml:3:18: providers[0] "desk": driver: driver "${site.folder}/lab.ts" is not installed: there is no file`,
  );
  expect(wrong.err).toContain('providers[1] "b": x');
});
