import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { driverConformance } from "@nodeyard/driver-testkit";
import { afterAll, describe, expect, test } from "vitest";
import { blankDisk, qemuRig, requireQemu } from "../../../../testing/qemu/index.ts";
import { qemuDriver } from "../src/index.ts";

const skip = requireQemu() !== undefined;
const folder = mkdtempSync(join(tmpdir(), "nodeyard-blank-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

// Real processes of QEMU. What is in the guest is no matter of the contract: testing/qemu boots a system and logs in.
describe.skipIf(skip)("qemu", () => {
  const image = { name: "blank", path: blankDisk(folder), format: "raw" };
  const label = { ram: 16, disk: 1 };
  driverConformance("qemu", qemuDriver, () => qemuRig([image], label), { describe, test, expect });
});
