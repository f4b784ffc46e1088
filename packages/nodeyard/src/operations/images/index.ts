export {
  deleteBuild,
  deleteUpload,
  ImageOperationError,
  isKnownImage,
  pauseImage,
  requestBuild,
} from "./change.ts";
export { type BuildCode, buildCodes, type UploadCode, uploadCodes } from "./codes.ts";
export {
  type ImageStatus,
  type ListedBuild,
  type ListedUpload,
  listBuilds,
  listImages,
  listUploads,
  lookUpImage,
} from "./list.ts";
export { checkExport, exportImages, importImages } from "./transfer.ts";
export { type ImageWork, imageWork } from "./work.ts";
