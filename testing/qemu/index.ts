export { Beyond } from "./beyond.ts";
export { libraries, type TestImage, testImage } from "./image.ts";
export { copyModules, kernelName, madeOnce, packRoot, unpackKernel } from "./kernel.ts";
export { Launches } from "./machines.ts";
export { reached } from "./reached.ts";
export { requireQemu } from "./require.ts";
export { blankDisk, compile, contextOf, type QemuRig, qemuRig, uploadOf } from "./rig.ts";
export { output } from "./run.ts";
export { Client } from "./ssh.ts";
