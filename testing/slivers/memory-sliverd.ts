// Loaded into sliverd before its program (`--import`): adds the back end `memory`, whose slivers end with the process.
import { existsSync, readFileSync } from "node:fs";
import { MemoryBackEnd, type Uses } from "./memory-back-end.ts";

const uid = process.getuid!();

/** What its slivers use is said by a file, since no processes are in them. */
class TestBackEnd extends MemoryBackEnd {
  override inspect() {
    this.now = Math.floor(Date.now() / 1000);
    const file = process.env.NODEYARD_SLIVER_USES ?? "";
    const uses: Readonly<Record<string, Uses>> = existsSync(file)
      ? JSON.parse(readFileSync(file, "utf8"))
      : {};
    for (const made of this.made.values()) Object.assign(made, uses[made.config.name]);
    return super.inspect();
  }
}

Object.assign(globalThis, {
  [Symbol.for("nodeyard.sliver.backEnds")]: { memory: () => new TestBackEnd(uid === 0 ? undefined : uid) },
});
