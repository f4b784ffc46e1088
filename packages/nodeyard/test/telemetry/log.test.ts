import { closeSync, openSync } from "node:fs";
import { expect, test } from "vitest";
import { createLog } from "../../src/telemetry/index.ts";

/** Linux's disk that is always full. */
const FULL = "/dev/full";

test.each(["json", "text"] as const)(
  "a disk that takes no more is no concern of those that log (%s)",
  (format) => {
    const descriptor = openSync(FULL, "a");
    const log = createLog({ level: "info", format, descriptor });
    expect(() => {
      for (let line = 0; line < 3; line++) log.error({ line }, "the disk is full");
    }).not.toThrow();
    closeSync(descriptor);
  },
);
