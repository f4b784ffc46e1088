export { uploadedParts } from "./listing.ts";
export { awsImageStore } from "./store.ts";
