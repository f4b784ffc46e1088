export { Builder, type BuilderConfig, type BuilderOptions } from "./builder.ts";
export type { Progress } from "./control/progress.ts";
export { type AlienImage, alienImages } from "./core/leaked-images.ts";
export { uploadKey } from "./core/retire.ts";
export { HostDisk } from "./edge/host-disk.ts";
export { type FolderLock, lockImages } from "./edge/lock.ts";
export { probeIsolation } from "./edge/run.ts";
export { BuilderError } from "./errors.ts";
export type { Disk, FileFacts, Intent, LocalBuild, Running } from "./runs/disk.ts";
