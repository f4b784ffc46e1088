import { type Driver, DriverError, messageOf } from "@nodeyard/driver";
import type { LabProviderConfig } from "./config.ts";
import { labConfig } from "./config.ts";
import { Boards } from "./edge/boards.ts";
import { labProvider } from "./provider.ts";

export const labDriver: Driver<LabProviderConfig> = {
  name: "lab",
  contract: 1,
  capabilities: { launches: true, inventory: false, probes: false, tags: true },
  config: labConfig,
  async open(config, { clock, log }) {
    const { folder } = config.own;
    try {
      const boards = await Boards.open(folder);
      log.info({ provider: config.name, folder }, "the lab is open");
      return labProvider({ boards, config, clock });
    } catch (error) {
      const why = `provider ${config.name}: folder ${folder} cannot be used: ${messageOf(error)}`;
      throw new DriverError("configuration", why, { cause: error });
    }
  },
};
