import type { Driver } from "@nodeyard/driver";
import { createQemuDriver } from "../driver.ts";
import type { QemuProviderConfig } from "../own.ts";
import { HostFolder } from "./host-folder.ts";

/** The `qemu` driver. */
export const qemuDriver: Driver<QemuProviderConfig> = createQemuDriver(HostFolder.open);
