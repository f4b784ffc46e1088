export { METASTATIC, metastaticDriver } from "./driver.ts";
export { unservedProviders, withoutPools } from "./left.ts";
export { isMetastatic, openMetastatic } from "./open.ts";
