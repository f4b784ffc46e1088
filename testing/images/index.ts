export { type BootKernel, bootKernel } from "./boot-kernel.ts";
export { BUILD_PATH, ELEMENTS, requireDiskimageBuilder } from "./require.ts";
