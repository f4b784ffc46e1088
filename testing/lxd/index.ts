export { lxdImage } from "./image.ts";
export { requireLxd } from "./require.ts";
export { compile, lxdRig, Trust } from "./rig.ts";
export { LxdServer } from "./server.ts";
export { startStreams } from "./streams.ts";
