export { METASTATIC, metastaticDriver } from "./driver.ts";
export { isMetastatic, openMetastatic } from "./open.ts";
