import { createHash } from "node:crypto";
import type { ExternalId } from "@nodeyard/driver";
import { type ConformanceRig, driverConformance } from "@nodeyard/driver-testkit";
import { describe, expect, test } from "vitest";
import { type AzureSettings, SECRET } from "../../../../testing/azure/index.ts";
import { azureDriver } from "../src/index.ts";
import { AzureRig, compile, vhd } from "./rig.ts";

/** Slow, with lists that lag, as Azure's do. */
const SLOW = { bootMs: 12_000, deletionMs: 8_000, operationMs: 3_000, lagMs: 2_500, pageSize: 2 };

const DATA = vhd(5);
const sum = (kind: string) => createHash(kind).update(DATA).digest("hex");
const IMAGE = {
  ...{ file: "/image.vhd", format: "vhd", size: DATA.byteLength, own: {} },
  ...{ sha256: sum("sha256"), md5: sum("md5") },
};

function setup(settings: Partial<AzureSettings>) {
  return async (): Promise<ConformanceRig> => {
    const rig = new AzureRig(settings);
    const { azure } = rig;
    const config = compile();
    const [pool] = config.pools;
    const elsewhere = compile({ small: {} }, { provider: { "resource-group": "other" } });
    return {
      clock: rig.clock,
      providerName: config.name,
      suspends: true,
      pool: pool!,
      label: pool!.labels.get("small")!,
      open: (installation, purpose = "serve") => rig.open(config, { installation, purpose }),
      openElsewhere: (installation) => rig.open(elsewhere, { installation }),
      drive: (work) => rig.drive(work),
      settle: () => rig.clock.advance(60_000),
      writes: async () => azure.calls.filter(({ call }) => !call.startsWith("GET")).length,
      fillQuota: async () => azure.set({ others: { standardDSv5Family: 200 } }),
      breakList: () => azure.set({ faults: [{ call: "GET virtualMachines", status: 500 }] }),
      refuse: async () =>
        azure.set({ faults: [{ call: "*", status: 401, code: "InvalidAuthenticationToken" }] }),
      silence: async () => azure.set({ faults: [{ call: "PUT virtualMachines", how: "silence", times: 1 }] }),
      async quoteSecrets() {
        const secrets = [SECRET, ...azure.logins.tokens()];
        azure.set({ faults: [{ call: "*", status: 400, code: "BadRequest", message: secrets.join(" ") }] });
        return secrets;
      },
      denyRemoval: async () =>
        azure.set({
          faults: [{ call: "DELETE virtualMachines", status: 404, code: "ResourceNotFound", times: 1 }],
        }),
      loseTag: async ({ id }) => {
        azure.world.find("nodes", "virtualMachines", nameOf(id))!.tags = {};
      },
      async emptyList() {
        azure.set({ hidesMachines: true });
        return async () => azure.set({ hidesMachines: false });
      },
      async makeForeign() {
        azure.world.make("nodes", "virtualMachines", "theirs", {
          location: "westeurope",
          properties: { provisioningState: "Succeeded", hardwareProfile: { vmSize: "Standard_B1ls" } },
        });
      },
      async image() {
        rig.files.set(IMAGE.file, DATA);
        return IMAGE;
      },
      stop: () => rig.drive(rig.stop()),
    };
  };
}

const nameOf = (id: ExternalId) => String(id);

const kit = { describe, test, expect };
driverConformance("azure, at once", azureDriver, setup({}), kit);
driverConformance("azure, slow, with lists that lag", azureDriver, setup(SLOW), kit);
