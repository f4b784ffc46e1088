export { type Disturb, MemoryBackEnd } from "./memory-back-end.ts";
export { PowerLossFiles, PowerLostError } from "./power-loss-files.ts";
