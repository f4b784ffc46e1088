export { createMetastaticDriver } from "./driver.ts";
export { metastaticDriver } from "./edge/default.ts";
export { type SliverAccess, SlotSlivers } from "./slot-slivers.ts";
