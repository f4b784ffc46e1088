export { metastaticDriver } from "./edge/metastatic.ts";
export { createMetastaticDriver } from "./slots/driver.ts";
export { type SliverAccess, SlotSlivers } from "./slots/slot-slivers.ts";
