export { Builders } from "./builders.ts";
export { ImageCheck } from "./image-check.ts";
export { checkImages, imagesWithoutRecord, readyBuilds } from "./image-end.ts";
export { isBadSum } from "./simulated-disk.ts";
