export { Archives } from "./edge/archives.ts";
export { Images } from "./edge/images.ts";
export { Pool } from "./edge/pool.ts";
export { Subvolumes } from "./edge/subvolumes.ts";
export { IMAGE_DIGEST, type ImageSource } from "./source.ts";
