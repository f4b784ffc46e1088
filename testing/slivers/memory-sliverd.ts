// Loaded into sliverd before its program (`--import`): adds the back end `memory`, whose slivers end with the process.
import { MemoryBackEnd } from "./memory-back-end.ts";

const uid = process.getuid!();

Object.assign(globalThis, {
  [Symbol.for("nodeyard.sliver.backEnds")]: { memory: () => new MemoryBackEnd(uid === 0 ? undefined : uid) },
});
