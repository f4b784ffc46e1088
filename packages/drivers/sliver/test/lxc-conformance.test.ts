import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { driverConformance } from "@nodeyard/driver-testkit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { patient } from "../../../../testing/patience.ts";
import { difference, hostState, Machine, whyNot } from "../../../../testing/slivers/index.ts";
import { sliverDriver } from "../src/index.ts";
import { contextOf, sliverRig } from "./rig.ts";

// The same kit with slivers that are made, by the daemon as it runs on machines.
describe.skipIf(whyNot() !== undefined)("real slivers", () => {
  const folder = mkdtempSync(join(tmpdir(), "nodeyard-slivers-"));
  const isolation = { folder, network: "10.215", pool: { bytes: 2_000_000_000 } };
  const machine = new Machine("real", "account", isolation);
  let before: ReturnType<typeof hostState>;
  beforeAll(() => {
    before = hostState(folder);
    return machine.start();
  });
  afterAll(async () => {
    await machine.clear();
    await machine.dismantle();
    await machine.stop();
    rmSync(folder, { recursive: true, force: true });
    expect(difference(before, hostState(folder))).toEqual([]);
  });

  driverConformance("sliver", sliverDriver, () => sliverRig(machine), { describe, test, expect });

  test("its own sshd shows the key that a launcher scans, another one for each", async () => {
    const rig = await sliverRig(machine);
    const provider = await rig.open("6a1f6d1e-0f5e-4a62-9d51-6f3f0d8f5b01");
    const { scan } = contextOf("any");
    const keys: string[] = [];
    for (const nodeId of ["0000000001", "0000000002"]) {
      const tag = {
        installation: "6a1f6d1e-0f5e-4a62-9d51-6f3f0d8f5b01",
        provider: "lab",
        pool: "main",
        nodeId,
      };
      const order = { tag, hostname: `np${nodeId}`, pool: rig.pool, label: rig.label, az: null };
      const request = { id: "1", labels: [], requestor: null, requestorData: null, relativePriority: 0 };
      const facts = { ...request, eventId: null, createdTime: null, tenantName: null };
      const signal = AbortSignal.timeout(patient(60_000));
      const steps = provider.create(
        { ...order, imageExternalId: null, request: facts, attempt: 1 },
        { signal, externalId: null },
      );
      let next = await steps.next();
      while (!next.done) next = await steps.next();
      const { interfaceIp, connection } = next.value;
      const seen = await scan.scan({
        host: interfaceIp!,
        port: connection!.port!,
        keys: true,
        timeoutMs: 20_000,
      });
      keys.push(...seen.hostKeys);
    }
    expect(keys).toHaveLength(2);
    expect(new Set(keys).size).toBe(2);
    await rig.stop();
  });
});
