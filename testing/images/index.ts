export { type BootKernel, bootKernel } from "./boot-kernel.ts";
export { debian } from "./kinds.ts";
export { BUILD_PATH, ELEMENTS, requireDiskimageBuilder } from "./require.ts";
