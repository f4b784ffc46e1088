import type { DriverContext } from "@nodeyard/driver";
import type { QemuProviderConfig } from "./config.ts";
import type { HostFolder } from "./edge/host-folder.ts";

/** What every step of a machine's life works with. */
export interface Parts {
  readonly host: HostFolder;
  readonly config: QemuProviderConfig;
  readonly context: DriverContext;
}
