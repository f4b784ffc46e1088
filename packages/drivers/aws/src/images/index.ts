export { uploadedParts } from "./listing.ts";
export { uploadsOf } from "./parts.ts";
export { ImageSources } from "./source.ts";
export { awsImageStore } from "./store.ts";
