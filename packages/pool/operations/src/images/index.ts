export * from "./change.ts";
export {
  type ImageStatus,
  type ListedBuild,
  type ListedUpload,
  listBuilds,
  listImages,
  listUploads,
  lookUpImage,
} from "./list.ts";
export * from "./transfer.ts";
export {
  askBuildLog,
  type BuildLogPart,
  type BuildLogRange,
  type ImageWork,
  imageWork,
} from "./work.ts";
