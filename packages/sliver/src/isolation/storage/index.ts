export { type ImageSource, Images } from "./edge/images.ts";
export { Pool } from "./edge/pool.ts";
export { Subvolumes } from "./edge/subvolumes.ts";
