import type { UninstalledDriver } from "@nodeyard/config";
import { commonProvider, section, type Table } from "@nodeyard/driver";
import { ibmvpc } from "./ibmvpc.ts";

const keysOf = (table: Table): UninstalledDriver => section({ ...commonProvider, ...table });

/** Drivers of Nodepool that have no package yet: their keys, for the validator. A package takes its table over. */
export const uninstalled = {
  ibmvpc: keysOf(ibmvpc),
};
