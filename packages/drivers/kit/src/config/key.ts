/** The words of a table: types of keys, keys that several drivers have, and rules. */
export * from "./cloud-words.ts";
export * from "./common-keys.ts";
export * from "./flavor-cloud.ts";
export { hostKeyOrKeys, hostKeys } from "./host-key.ts";
export { uploadedImageTable, uploadKeys, uploadLimit, uploadTable } from "./images.ts";
export * from "./section.ts";
export * from "./words.ts";
