import type { Driver } from "@nodeyard/driver";
import type { QemuProviderConfig } from "../config.ts";
import { createQemuDriver } from "../driver.ts";
import { HostFolder } from "./host-folder.ts";

/** The `qemu` driver. */
export const qemuDriver: Driver<QemuProviderConfig> = createQemuDriver(HostFolder.open);
