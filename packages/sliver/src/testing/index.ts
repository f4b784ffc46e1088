export { type Disturb, MemoryBackEnd } from "./memory-back-end.ts";
export { type Fate, MemoryNode, type MemoryNodeOptions } from "./memory-node.ts";
export { PowerLossFiles, PowerLostError } from "./power-loss-files.ts";
